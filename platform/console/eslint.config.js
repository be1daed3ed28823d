import tseslint from "typescript-eslint";

const letters = "/\\p{L}{2,}/u";
const shown = "/^(aria-label|title|placeholder|alt|label|hint|wrong)$/";

export default tseslint.config(
  { ignores: ["generated/", "node_modules/"] },
  ...tseslint.configs.strict,
  {
    files: ["**/*.ts", "**/*.tsx"],
    rules: {
      "no-restricted-properties": ["error", { property: "innerHTML" }, { property: "outerHTML" }, { property: "insertAdjacentHTML" }],
      "no-restricted-globals": ["error", "eval", "Function"],
      "@typescript-eslint/no-confusing-void-expression": "off",
      eqeqeq: "error",
      "no-console": "error",
    },
  },
  {
    // Words stand in words({...}) in both languages: what is literal in a page is in one alone.
    files: ["**/*.tsx"],
    rules: {
      "no-restricted-syntax": [
        "error",
        { selector: `JSXText[value=${letters}]`, message: "Words stand in words({...}), in both languages." },
        { selector: `JSXAttribute[name.name=${shown}] > Literal[value=${letters}]`, message: "Words stand in words({...}), in both languages." },
        { selector: `JSXAttribute[name.name=${shown}] TemplateElement[value.raw=${letters}]`, message: "Words stand in words({...}), in both languages." },
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: "Text of others is text." },
      ],
    },
  },
);
