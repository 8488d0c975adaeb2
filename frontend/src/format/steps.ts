/** What a step is called: the iterations of a server have phases. */
export const stepNoun = (phases: unknown[] = []): "iteration" | "step" => phases.some(Boolean) ? "iteration" : "step";

export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
