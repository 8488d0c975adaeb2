/** What a step is called: the iterations of a server have phases. */
export const stepNoun = (phases: unknown[] = []): "iteration" | "step" => phases.some(Boolean) ? "iteration" : "step";

/** Any step in a sentence. */
export const stepInWords = (noun: string): string => `${{ recording: "the", iteration: "an" }[noun] ?? "a"} ${noun}`;

export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** The text as it reads within a sentence; abbreviations such as GPU stay. */
export const uncapitalized = (text: string): string =>
  /^.\p{Lu}/u.test(text) ? text : text.charAt(0).toLowerCase() + text.slice(1);
