/** Something that a terminal sent: on which topic, when, and what there is to say of it. */
import type { ComponentChildren } from "preact";
import { Age, Name } from "../parts/basics.tsx";

export function Came({ topic, time, children }: { topic: string; time: string; children: ComponentChildren }) {
  return (
    <li>
      <span class="line">
        <Name text={topic} mono />
        <span class="dim">
          <Age at={time} />
        </span>
      </span>
      {children}
    </li>
  );
}
