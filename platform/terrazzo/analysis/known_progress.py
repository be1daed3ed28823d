"""How far each job is, in memory: found by job, by object and by script, however many jobs there are. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from terrazzo.analysis.progress import ScriptProgress
from terrazzo.analysis.scripts import Job, ScriptKey


class KnownProgress:
    """The progress of all jobs; what is looked for by object or by script costs what there is of it."""

    def __init__(self) -> None:
        self._of_objects: dict[int, dict[ScriptKey, ScriptProgress]] = {}
        self._of_scripts: dict[ScriptKey, dict[int, None]] = {}  # the objects

    def get(self, job: Job) -> ScriptProgress | None:
        """How far a job is; None: it has not begun."""
        of_object = self._of_objects.get(job.object_id)
        return None if of_object is None else of_object.get(ScriptKey(job.kind, job.script_id))

    def __getitem__(self, job: Job) -> ScriptProgress:
        return self._of_objects[job.object_id][ScriptKey(job.kind, job.script_id)]

    def __setitem__(self, job: Job, progress: ScriptProgress) -> None:
        key = ScriptKey(job.kind, job.script_id)
        self._of_objects.setdefault(job.object_id, {})[key] = progress
        self._of_scripts.setdefault(key, {})[job.object_id] = None

    def __contains__(self, object_id: object) -> bool:
        """Whether any job is on this object."""
        return object_id in self._of_objects

    def of_object(self, object_id: int) -> list[tuple[Job, ScriptProgress]]:
        """All jobs on an object, with how far they are."""
        found = self._of_objects.get(object_id, {})
        return [(Job(key.kind, key.script_id, object_id), each) for key, each in found.items()]

    def scripts(self) -> set[ScriptKey]:
        """All scripts that have begun anywhere, deleted ones too."""
        return set(self._of_scripts)

    def forget(self, key: ScriptKey) -> Iterator[int]:
        """Forgets the jobs of a script one after the other; gives the objects on which none is left."""
        objects = self._of_scripts.get(key, {})
        while objects:
            object_id, _ = objects.popitem()
            of_object = self._of_objects[object_id]
            del of_object[key]
            if not of_object:
                del self._of_objects[object_id]
                yield object_id
        self._of_scripts.pop(key, None)
