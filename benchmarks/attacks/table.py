"""All attacks, by number."""

from __future__ import annotations

from attacks import bridges, histories, jobs, reports, requests, scripts, subscriptions
from attacks.attack import Attack

ATTACKS: dict[int, Attack] = {
    attack.number: attack
    for attack in (
        reports.LoneSurrogates(),
        reports.ToggledEvents(),
        subscriptions.RepeatedFilter(),
        reports.NamesThatGrow(),
        reports.LongText(),
        reports.JunkUnderLongKey(),
        subscriptions.ShareGroups(),
        subscriptions.DeepWildcards(),
        subscriptions.InflightThenAway(),
        subscriptions.ManyTopics(),
        subscriptions.MadeUpAnswers(),
        subscriptions.TerminalCalledLikeAChannel(),
        bridges.UnlawfulBroker(),
        requests.CostlyTrials(),
        histories.ManyFilters(),
        requests.WideFiles(),
        scripts.ComparedTexts(),
        scripts.LongScripts(),
        requests.LongPatterns(),
        requests.ManyTrialImports(),
        histories.LongKeys(),
        histories.LongPages(),
        histories.ManyFeeds(),
        scripts.QuadraticLists(),
        histories.IdleFeed(),
        jobs.CostlyJobs(),
        histories.UnreadExports(),
    )
}
