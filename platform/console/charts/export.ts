/** What is shown, as files. */

/** Offers a file to be kept. */
export function keepFile(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 100);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** A legend's entry in a picture. */
export interface PictureLine {
  color: string;
  text: string;
}

const LINE_PX = 20;
const EDGE_PX = 12;

/** A chart's canvas as a picture, with its title and legend above it. */
export async function picture(canvas: HTMLCanvasElement, title: string, legend: readonly PictureLine[], ground: string, text: string): Promise<Blob> {
  const ratio = devicePixelRatio || 1;
  const head = (LINE_PX * (1 + legend.length) + EDGE_PX) * ratio;
  const sheet = document.createElement("canvas");
  sheet.width = canvas.width;
  sheet.height = canvas.height + head;
  const context = sheet.getContext("2d") as CanvasRenderingContext2D;
  context.fillStyle = ground;
  context.fillRect(0, 0, sheet.width, sheet.height);
  context.scale(ratio, ratio);
  context.font = "13px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = text;
  context.fillText(title, EDGE_PX, LINE_PX / 2 + 4);
  legend.forEach((line, index) => {
    const middle = LINE_PX * (index + 1.5) + 4;
    context.fillStyle = line.color;
    context.fillRect(EDGE_PX, middle - 1, 14, 2);
    context.fillStyle = text;
    context.fillText(line.text, EDGE_PX + 22, middle);
  });
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.drawImage(canvas, 0, head);
  return new Promise((resolve, reject) => {
    sheet.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture could not be made"))), "image/png");
  });
}
