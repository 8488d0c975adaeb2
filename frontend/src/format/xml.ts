/** Texts in XML, whatever a name from a trace holds. */

/** Characters that no XML document may hold, not even escaped: control characters, halves of surrogate pairs, U+FFFE and U+FFFF. */
const IMPOSSIBLE = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu;

/** The text for an attribute in double quotes or between tags; impossible characters become U+FFFD. */
export const escapeXml = (text: string): string =>
  text.replace(IMPOSSIBLE, "\ufffd").replace(/[&<>"'\t\n\r]/g, (letter) => `&#${letter.charCodeAt(0)};`);
