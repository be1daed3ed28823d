import { words } from "../words/words.ts";

export const w = words({
  range: ["Range", "范围"],
  hours: ["{n} h", "{n} 小时"],
  days: ["{n} d", "{n} 天"],
  earlier: ["Earlier", "更早"],
  later: ["Later", "更晚"],
  closer: ["Zoom in", "放大"],
  wider: ["Zoom out", "缩小"],
  live: ["Live", "实时"],
  liveHint: ["Follow the clock", "跟随时钟"],
  week: ["Last week", "上周"],
  weekHint: ["Compare with a week before", "与一周前比较"],
  weekValue: ["last week {value}", "上周 {value}"],
  weekBefore: ["{name}, a week before", "{name}，一周前"],
  table: ["Table", "表格"],
  png: ["PNG", "PNG"],
  csv: ["CSV", "CSV"],
  keys: [
    "Drag or arrow keys: move. Ctrl and wheel, pinch, + and −: zoom. Shift and drag: zoom to a range.",
    "拖动或方向键：移动。Ctrl 加滚轮、双指、+ 和 −：缩放。按住 Shift 拖动：缩放到所选范围。",
  ],
  time: ["Time", "时间"],
  newest: ["The newest {n} of the rows are shown.", "显示最新的 {n} 行。"],
  noValues: ["No values in this range.", "此范围内没有数值。"],
  noKeys: ["Choose a variable to draw its curve.", "请选择一个变量以绘制曲线。"],
  show: ["Show or hide {name}", "显示或隐藏 {name}"],
});
