import console from "../../platform/console/eslint.config.js";

export default [{ ignores: ["dist/", "src/generated/"] }, ...console];
