/** The style of what the first pages don't show: it is loaded with the first page that needs it. */

let loading: Promise<void> | undefined;

/** Loads it, once; a page that is shown without it would be out of place. */
export function loadLaterStyle(): Promise<void> {
  loading ??= new Promise<void>((resolve, reject) => {
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = document.querySelector<HTMLMetaElement>('meta[name="terrazzo-style"]')?.content ?? "";
    sheet.onload = () => resolve();
    sheet.onerror = () => {
      loading = undefined;
      sheet.remove();
      reject(new TypeError("Failed to fetch the style of the page"));
    };
    document.head.append(sheet);
  });
  return loading;
}
