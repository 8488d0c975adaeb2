// The page in a frame of a notebook's output. What the page asks goes to the kernel as messages of this widget.

const LIGHT_FROM = 384; // of red, green and blue together

/** Whether text around an element is light on dark; a notebook's theme need not be the system's. */
function isDark(element) {
  const context = new OffscreenCanvas(1, 1).getContext("2d"); // knows every notation of a color
  context.fillStyle = getComputedStyle(element).color;
  context.fillRect(0, 0, 1, 1);
  const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
  return red + green + blue >= LIGHT_FROM;
}

async function unpack(headers, bytes) {
  const stream = new Blob([bytes]).stream();
  const isPacked = headers["Content-Encoding"] === "gzip";
  return await new Response(isPacked ? stream.pipeThrough(new DecompressionStream("gzip")) : stream).arrayBuffer();
}

function render({ model, el }) {
  const view = Math.random().toString(36).slice(2); // all views of a model get all answers
  const waiting = new Map();
  let count = 0;

  const receive = async ({ id, status, headers }, [bytes]) => {
    const resolve = waiting.get(id);
    waiting.delete(id);
    resolve?.({ status, headers, content: await unpack(headers, bytes) });
  };
  const ask = (request) =>
    new Promise((resolve) => {
      const id = `${view} ${++count}`;
      waiting.set(id, resolve);
      model.send({ ...request, id });
    });

  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts allow-downloads"); // an origin of its own: it can't read the notebook
  frame.title = model.get("title");
  frame.style.cssText = `display: block; width: 100%; height: ${model.get("height")}px; border: 0`;
  frame.srcdoc = "<p>The notebook's kernel sends the page. If it has ended, run this cell again.</p>";

  const followTheme = () => frame.style.colorScheme = isDark(el) ? "dark" : "light";
  const themes = new MutationObserver(followTheme);
  themes.observe(document.body, { attributes: true });

  frame.addEventListener("load", () => {
    followTheme();
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = async ({ data: { id, request } }) => {
      const answer = await ask(request);
      port1.postMessage({ id, answer }, [answer.content]);
    };
    frame.contentWindow.postMessage("", "*", [port2]);
  });
  model.on("msg:custom", receive);
  el.append(frame);
  ask({ method: "GET", target: "/" }).then(({ content }) => frame.srcdoc = new TextDecoder().decode(content));

  return () => {
    model.off("msg:custom", receive);
    themes.disconnect();
    frame.remove();
  };
}

export default { render };
