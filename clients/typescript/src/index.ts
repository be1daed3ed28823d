/** What programs in TypeScript and JavaScript use of the platform. */
export * from "./client.ts";
export { Frames, isGap, MOST_WAITING } from "./frames.ts";
export * from "./gateway.ts";
export * from "./live.ts";
export { RETRIES, type Retries } from "./retries.ts";
export * from "./times.ts";
