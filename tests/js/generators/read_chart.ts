import createClient from "openapi-fetch";
import type { paths } from "./api.js";

declare const process: { argv: string[] };
const [url, username, password, objectId] = process.argv.slice(2) as [string, string, string, string];
const client = createClient<paths>({ baseUrl: url });

const login = await client.POST("/apiproxy/api/login", { body: { username, password } });
if (login.data === undefined || login.data.code !== 200) throw new Error(JSON.stringify(login));
const token: string = login.data.result.token;

const chart = await client.POST("/apiproxy/api/get_mosaic_chart", {
  headers: { Authorization: `Bearer ${token}` },
  body: { object_id: objectId, keys: ["TEMP"], start_time: "2020-01-01T00:00:00Z", end_time: "2100-01-01T00:00:00Z" },
});
if (chart.data === undefined || chart.data.code !== 200) throw new Error(JSON.stringify(chart));
console.log(JSON.stringify(chart.data.result.data));
