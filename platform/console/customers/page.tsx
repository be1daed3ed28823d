/** Customers: whom objects stand at or belong to, and which objects. */
import { route } from "../shell/routes.ts";
import { CustomerPart } from "./customer.tsx";
import { CustomerList } from "./list.tsx";

export function Page() {
  const uid = route.value.path[0];
  return uid ? <CustomerPart key={uid} uid={uid} /> : <CustomerList />;
}
