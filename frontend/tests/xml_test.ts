import { strictEqual as is } from "node:assert/strict";
import { escaped } from "../src/xml.ts";

Deno.test("whatever a name holds can stand in an attribute and between tags", () => {
  is(escaped(`a<b> & "c" 'd' ]]> é 😀`), "a&#60;b&#62; &#38; &#34;c&#34; &#39;d&#39; ]]&#62; é 😀");
  is(escaped("\t\r\n"), "&#9;&#13;&#10;");
  is(escaped("a\0b\x1b\x7f"), "a\ufffdb\ufffd\x7f");
  is(escaped("\ud800a\udfff"), "\ufffda\ufffd");
  is(escaped("\ufffe\uffff\ufffd"), "\ufffd\ufffd\ufffd");
});
