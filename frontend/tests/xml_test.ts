import { strictEqual as is } from "node:assert/strict";
import { escapeXml } from "../src/format/xml.ts";

Deno.test("whatever a name holds can stand in an attribute and between tags", () => {
  is(escapeXml(`a<b> & "c" 'd' ]]> é 😀`), "a&#60;b&#62; &#38; &#34;c&#34; &#39;d&#39; ]]&#62; é 😀");
  is(escapeXml("\t\r\n"), "&#9;&#13;&#10;");
  is(escapeXml("a\0b\x1b\x7f"), "a\ufffdb\ufffd\x7f");
  is(escapeXml("\ud800a\udfff"), "\ufffda\ufffd");
  is(escapeXml("\ufffe\uffff\ufffd"), "\ufffd\ufffd\ufffd");
});
