"""A process of its own for `test_decoders`: reads each kind's first list in a thread of its own, all at once.

What is imported is shared by its children, which saves each an import's second; nothing has been decoded by then.
Standard input: a list of each kind with all it may have, by the name of its struct. Prints how the children ended.
"""

import json
import os
import sys
import threading
from collections import Counter
from typing import Any

import msgspec

BUILT_IN_A_THREAD = 3
CHILDREN = 60


def watched(build: Any) -> Any:
    """The same, but for the end it makes of a process that builds one in a thread."""

    class Watched:
        def __class_getitem__(cls, what: Any) -> Any:
            return build[what]

        def __new__(cls, *given: Any, **named: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                os._exit(BUILT_IN_A_THREAD)
            return build(*given, **named)

    return Watched


def read_all_at_once(lists: dict[Any, bytes], decode_list: Any) -> None:
    sys.setswitchinterval(1e-6)
    begin = threading.Barrier(len(lists))

    def read(kind: Any) -> None:
        begin.wait()
        if not decode_list(lists[kind], kind).items:
            os._exit(1)

    threads = [threading.Thread(target=read, args=(kind,)) for kind in lists]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    if "--watched" in sys.argv:
        msgspec.json.Decoder = watched(msgspec.json.Decoder)
        msgspec.defstruct = watched(msgspec.defstruct)
    from kube.client.decoder import STRUCTS, decode_list

    documents = json.load(sys.stdin)
    lists = {kind: json.dumps(documents[kind.__name__]).encode() for kind in STRUCTS}
    ended: Counter[int] = Counter()
    for _ in range(CHILDREN):
        child = os.fork()
        if child == 0:
            read_all_at_once(lists, decode_list)
            os._exit(0)
        ended[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])] += 1
    json.dump(ended, sys.stdout)


main()
