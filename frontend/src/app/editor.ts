/** Opening a line of the user's program, where the page runs inside VS Code. */

const OF_WEBVIEWS = /^(vscode-webview:\/\/|https:\/\/[\w-]+\.vscode-cdn\.net$)/;

/**
 * The origin of the VS Code window around TensorBoard, or null if there is none.
 *
 * VS Code's TensorBoard extension shows TensorBoard in a frame of a webview, and TensorBoard shows this page in a frame
 * of its own; so the webview is the second window outwards.
 */
export function editorOrigin(ancestors: ArrayLike<string> | undefined): string | null {
  const origin = ancestors?.[1];
  return origin && OF_WEBVIEWS.test(origin) ? origin : null;
}

const origin = editorOrigin(globalThis.location?.ancestorOrigins);

/** Opens a line in the editor around the page; null where there is none. */
export const openInEditor = origin === null ? null : (filename: string, line: number) => {
  // The extension counts lines from 0, and takes no message whose line is 0.
  globalThis.parent.parent.postMessage({ filename, line: Math.max(1, line - 1) }, origin);
};
