/** Files that are loaded on demand: an import is where they are. */
declare module "world-atlas/land-110m.json" {
  const url: string;
  export default url;
}
declare module "world-atlas/land-50m.json" {
  const url: string;
  export default url;
}
