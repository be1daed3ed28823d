/** Whether the page still reads what it shows first: `aria-busy` of `<main>`, so that nobody takes half a page for all of it. */
let pending = 0;

function show(): void {
  document.getElementById("main")?.setAttribute("aria-busy", String(pending > 0));
}

/** From now on until what is returned is called. */
export function beBusy(): () => void {
  pending += 1;
  show();
  return () => {
    pending -= 1;
    show();
  };
}
