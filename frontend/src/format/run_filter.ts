/** The filter of run lists: as TensorBoard's own, regular expressions in any case, several of them apart by spaces. */

/** Whether each of the filter's patterns is in one of some names; one that is no regular expression counts as text. */
export function runFilter(text: string): (...names: string[]) => boolean {
  const tests = text.split(/\s+/).filter(Boolean).map((word) => {
    try {
      const pattern = new RegExp(word, "i");
      return (name: string) => pattern.test(name);
    } catch {
      return (name: string) => name.toLowerCase().includes(word.toLowerCase());
    }
  });
  return (...names) => tests.every((test) => names.some(test));
}

/** The folder of a run's label, and the rest of it. */
export function folderAndName(label: string): [folder: string, name: string] {
  const end = label.replace(/\/+$/, "").lastIndexOf("/");
  return [label.slice(0, Math.max(0, end)), label.slice(end + 1)];
}
