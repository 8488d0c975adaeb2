/** What keys and mouse do on the timeline, for the sheet of keys. */
export const KEYS: [keys: string, meaning: string][] = [
  ["W S", "Zoom in and out at the pointer while it is held; Ctrl and the wheel too"],
  ["A D", "Move left and right while it is held; Shift and the wheel, or Shift and drag, too"],
  ["↑ ↓", "Scroll the tracks; the wheel too"],
  ["0", "The whole recording"],
  ["F", "Centre the selection; once more: fit it. Double-click does so at once"],
  [". ,", "Next or previous slice of the row; → and ← too"],
  ["⇧↑ ⇧↓", "The slice above or below the selection"],
  ["[ ]", "Back and forth along the arrows of the selection"],
  ["M R", "Mark the time of the selection on its track, or on all; dragging marks any"],
  ["P", "Pin the track under the pointer, or that of the selection"],
  ["C", "Show or hide the critical path of each step"],
  ["/", "Search; Enter and ⇧Enter go to the next and the previous hit"],
  ["Q", "Open or close the drawer"],
  ["1 2 3 4", "What dragging does: 2 moves, 3 zooms, 1 and 4 mark a time"],
  ["Esc", "Take back the marked time, then the selection, then the search"],
  ["?", "This sheet"],
];
