// What a kernel is asked to run is constant: a template, a concatenation or a variable as code is refused.
//
// A notebook's author chooses its texts, names and numbers; one of them in the code of a request is run with the reader's
// authority. `node lint.mjs [FILES]` lists the places; the build does so first.
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const ts = createRequire(join(here, "lab", "package.json"))("typescript");

const ASKS = new Set(["requestExecute", "execute"]);
/** Other ways to the same message. */
const REFUSED = new Set(["sendShellMessage", "sendControlMessage", "execute_request"]);

/** The constants of a file: names → their values, and the names of what it imports. */
function constants(file) {
  const values = new Map();
  const imported = new Set();
  for (const statement of file.statements) {
    if (ts.isVariableStatement(statement) && statement.declarationList.flags & ts.NodeFlags.Const) {
      for (const { name, initializer } of statement.declarationList.declarations) if (ts.isIdentifier(name) && initializer) values.set(name.text, initializer);
    }
    if (!ts.isImportDeclaration(statement) || !statement.importClause) continue;
    const { name, namedBindings } = statement.importClause;
    if (name && statement.moduleSpecifier.text.endsWith(".py")) imported.add(name.text);
    if (namedBindings && ts.isNamedImports(namedBindings)) for (const one of namedBindings.elements) imported.add(one.name.text);
  }
  return { values, imported };
}

function* problemsOf(file) {
  const { values, imported } = constants(file);
  const shadowed = new Set();
  const collect = (node) => {
    const inner = ts.isParameter(node) || (ts.isVariableDeclaration(node) && node.parent.parent.parent !== file) || ts.isBindingElement(node);
    if (inner && ts.isIdentifier(node.name)) shadowed.add(node.name.text);
    ts.forEachChild(node, collect);
  };
  collect(file);

  const bare = (node) => (ts.isAsExpression(node) || ts.isParenthesizedExpression(node) ? bare(node.expression) : node);
  const isConstant = (given) => {
    const node = given && bare(given);
    if (!node) return false;
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return true;
    if (ts.isPropertyAccessExpression(node)) {
      if (!ts.isIdentifier(node.expression) || shadowed.has(node.expression.text)) return false;
      const owner = values.get(node.expression.text);
      return owner ? isTable(owner) : imported.has(node.expression.text);
    }
    if (!ts.isIdentifier(node) || shadowed.has(node.text)) return false;
    return values.has(node.text) ? isConstant(values.get(node.text)) : imported.has(node.text);
  };
  const isTable = (node) => ts.isObjectLiteralExpression(bare(node)) && bare(node).properties.every((one) => ts.isPropertyAssignment(one) && isConstant(one.initializer));
  const property = (node, name) => node.properties.find((one) => one.name?.text === name);
  const valueOf = (one) => (one && ts.isShorthandPropertyAssignment(one) ? one.name : one?.initializer);
  const isRequest = (given) => {
    const node = given && bare(given);
    if (!node || !ts.isObjectLiteralExpression(node) || node.properties.some(ts.isSpreadAssignment)) return false;
    const more = property(node, "user_expressions");
    return isConstant(valueOf(property(node, "code"))) && (!more || isTable(valueOf(more)));
  };

  const at = (node, text) => {
    const { line } = file.getLineAndCharacterOfPosition(node.getStart(file));
    return `${relative(here, file.fileName)}:${line + 1}: ${text}`;
  };
  function* walk(node) {
    if ((ts.isIdentifier(node) || ts.isStringLiteralLike(node)) && REFUSED.has(node.text)) yield at(node, `${node.text}: kernels are asked by requestExecute only`);
    if (ts.isStringLiteralLike(node) && node.text === "requestExecute") yield at(node, "requestExecute by its name in a string");
    if (ts.isIdentifier(node) && node.text === "requestExecute") {
      const callee = ts.isPropertyAccessExpression(node.parent) ? node.parent : node;
      if (!ts.isCallExpression(callee.parent) || callee.parent.expression !== callee) yield at(node, "requestExecute is passed on here: call it, so that its code can be checked");
    }
    if (ts.isCallExpression(node)) {
      const callee = node.expression;
      const name = ts.isPropertyAccessExpression(callee) ? callee.name.text : ts.isIdentifier(callee) ? callee.text : "";
      const [first] = node.arguments;
      const constant = name === "requestExecute" ? isRequest(first) : isConstant(first) || isRequest(first);
      if (ASKS.has(name) && !constant) yield at(node, `the code of ${name} has to be a constant; send what varies as data (lab/src/kernels.ts: ask)`);
    }
    for (const child of node.getChildren(file)) yield* walk(child);
  }
  yield* walk(file);
}

const sources = () => [join(here, "src"), join(here, "lab", "src")].flatMap((folder) => readdirSync(folder).filter((name) => /\.(js|ts)$/.test(name)).map((name) => join(folder, name)));

/** Each place of the files where a kernel may be asked to run something else than a constant. */
export function problems(files = sources()) {
  return files.flatMap((path) => [...problemsOf(ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true))]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = problems(process.argv.length > 2 ? process.argv.slice(2) : undefined);
  for (const one of found) console.error(one);
  process.exitCode = found.length ? 1 : 0;
}
