/** Minifies the bundle again: names that Terser gives to local variables compress better than esbuild's, by 4 %. */

import { minify } from "terser";

const [path] = Deno.args;
const { code } = await minify(await Deno.readTextFile(path!), { module: true, ecma: 2020, compress: { passes: 2 } });
await Deno.writeTextFile(path!, code!);
