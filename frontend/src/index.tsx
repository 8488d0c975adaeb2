import { render as mount } from "preact";

/** TensorBoard imports this module into the plugin's frame and calls this. */
export function render() {
  document.documentElement.lang = "en";
  document.title = "PyTorch profiler";
  mount(<h1>Kinetoscope</h1>, document.body);
}
