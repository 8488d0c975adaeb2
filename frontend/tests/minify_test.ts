import { notStrictEqual as isNot, strictEqual as is } from "node:assert/strict";
import { dropFields, gatherSimilar, squeeze } from "../minify.ts";

const run = (program: string) => new Function(`${program};return JSON.stringify(trail)`)();

// Similar functions far apart, constants, and statements that need what stands before them.
const PROGRAM = `var trail=[],first=()=>trail.push("first of all"),limit=3;first();
function sumOf(numbers){return numbers.reduce((sum,number)=>sum+number,limit)}var total=sumOf([1,2]),later=()=>total;
try{trail.push(later())}catch{}class Box{}function other(){trail.push("another text, unlike the rest")}
var twice=later()*2,box=new Box,names={of:()=>twice,list:[1,-2,"a"]};other();
function sumAll(numbers){return numbers.reduce((sum,number)=>sum+number,twice)}trail.push(sumAll(names.list),names.of())`;

Deno.test("a program with its declarations in another order does the same", () => {
  isNot(gatherSimilar(PROGRAM), PROGRAM);
  is(run(gatherSimilar(PROGRAM)), run(PROGRAM));
});

Deno.test("similar functions stand next to each other", () => {
  const gathered = gatherSimilar(PROGRAM);
  const [one, alike, other] = ["sumOf", "sumAll", "other"].map((name) => gathered.indexOf(`function ${name}`));
  is(Math.abs(one! - alike!) < Math.abs(one! - other!), true);
});

Deno.test("a style sheet means the same without white space", () => {
  is(
    squeeze(`/* why */\n.a > b,\n.a :hover {\n  width: calc(1px + 2%);\n  margin: 0 4px;\n}\n`),
    ".a>b,.a :hover{width:calc(1px + 2%);margin:0 4px}",
  );
});

Deno.test("fields without a value need no declaration in front of a constructor", () => {
  is(
    dropFields("var a=class{#d=1;x;y$;constructor(e){this.x=e}},b=class{static s;constructor(){}z;run(){}}"),
    "var a=class{#d=1;constructor(e){this.x=e}},b=class{static s;constructor(){}z;run(){}}",
  );
});
