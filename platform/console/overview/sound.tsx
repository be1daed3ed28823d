/** A short tone for what is new, if somebody wants one. */
import { signal } from "@preact/signals";
import { t } from "../words/words.ts";
import { w } from "./words.ts";

const KEY = "terrazzo-sound";
export const isLoud = signal(localStorage.getItem(KEY) === "1");

/** Two soft notes. */
export function chime(): void {
  const audio = new AudioContext();
  const volume = audio.createGain();
  volume.gain.setValueAtTime(0.06, audio.currentTime);
  volume.gain.exponentialRampToValueAtTime(0.0001, audio.currentTime + 0.5);
  volume.connect(audio.destination);
  [660, 880].forEach((hertz, i) => {
    const tone = audio.createOscillator();
    tone.frequency.value = hertz;
    tone.connect(volume);
    tone.start(audio.currentTime + i * 0.12);
    tone.stop(audio.currentTime + 0.5);
  });
  setTimeout(() => void audio.close(), 1_000);
}

export function SoundSwitch() {
  const change = (isOn: boolean) => {
    isLoud.value = isOn;
    localStorage.setItem(KEY, isOn ? "1" : "0");
    if (isOn) chime();
  };
  return (
    <label class="line dim">
      <input type="checkbox" checked={isLoud.value} onChange={(event) => change(event.currentTarget.checked)} />
      {t(w.sound)}
    </label>
  );
}
