import { strictEqual as is } from "node:assert/strict";
import { editorOrigin } from "../src/app/editor.ts";

Deno.test("the window around TensorBoard is an editor only if its origin is that of VS Code's webviews", () => {
  is(editorOrigin(["http://localhost:6006", "vscode-webview://1a2b", "vscode-file://x"]), "vscode-webview://1a2b");
  is(editorOrigin(["https://p.example", "https://1a2b.vscode-cdn.net"]), "https://1a2b.vscode-cdn.net");
  for (const ancestors of [undefined, [], ["vscode-webview://1a2b"], ["http://localhost", "https://evil.example"]]) {
    is(editorOrigin(ancestors), null);
  }
  is(editorOrigin(["http://localhost", "https://evil.example/x.vscode-cdn.net"]), null);
});
