/** Words of terminals that are out of service. */
import { words as declare } from "../words/words.ts";

export const words = declare({
  out: ["Out of service", "停用维护"],
  back: ["Back into service", "恢复运行"],
  isOut: ["{n} {n|terminal is|terminals are} out of service", "{n} 台终端已停用维护"],
  isBack: ["It is back in service", "已恢复运行"],
  terminals: ["{n} {n|terminal|terminals}", "{n} 台终端"],
  length: ["For", "时长"],
  hours: ["{n} {n|hour|hours}", "{n} 小时"],
  days: ["{n} {n|day|days}", "{n} 天"],
  reason: ["Reason", "原因"],
  hint: ["Nothing about it alarms meanwhile; it ends by itself.", "期间不会有任何告警；到时自动结束。"],
  until: ["until {time}", "至 {time}"],
  only: ["out of service", "停用维护中"],
  short: ["out", "停用"],
});
