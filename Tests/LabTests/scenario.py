"""The named scenarios of `muster-lab bench network`, by real processes over the switch."""

import json
import subprocess
import time

# Flows are measured from this time after the last participant has joined; in the model each flow
# from the same time after its own two have.
_SETTLING = 5


class Scenario:
    def __init__(self, lab, name):
        self.name = name
        self._lab = lab
        self._plan = self._bench("--list")[0]
        self.seconds = self._plan["seconds"]
        self.participants = self._plan["participants"]
        if self._plan["tcp"]:
            raise ValueError(f"{name}: TCP is only in the model")

    def _bench(self, *more):
        output = subprocess.run(
            [self._lab, "bench", "network", "--scenario", self.name, *more], check=True,
            capture_output=True, text=True).stdout
        return [json.loads(line) for line in output.splitlines()]

    def model(self):
        """What the simulator measures of each flow, by the names of sender and receiver."""
        return {(flow["from"], flow["to"]): flow for flow in self._bench("--json")}

    def run(self, t):
        """Runs the scenario; returns what the switch and the nodes measured of each flow with
        video, by the names of sender and receiver."""
        lan = t.lan(len(self.participants), faulty=True)
        start = t.now()
        nodes, before = {}, {}
        for at, act in self._actions(t, lan, nodes, before):
            time.sleep(max(0.0, start + at - t.now()))
            act()
        time.sleep(max(0.0, start + self.seconds - t.now()))
        passed = lan.measured()
        result = {}
        for sender, receiver in self._flows():
            flow = passed[self._place(sender), self._place(receiver)]
            after = _received(nodes[receiver], nodes[sender])
            flow["frames"] = after["frames"] - before[sender, receiver]["frames"]
            flow["audioLostPercent"] = _audio_lost_percent(before[sender, receiver], after)
            result[sender, receiver] = flow
        for node in nodes.values():
            node.send("quit")
        for node in nodes.values():
            node.ended(10)
        return result

    def _actions(self, t, lan, nodes, before):
        """Pairs of time and function, in order of time; they fill `nodes` by name, and `before` with
        what each flow had received when its measurement began."""
        actions = []
        for place, participant in enumerate(self.participants):
            for way in ("up", "down"):
                for step in participant[way]:
                    conditions = {key: value for key, value in step.items() if key != "at"}
                    actions.append((step["at"], _order(lan, place, way, conditions)))
            actions.append((participant["joinsAt"], self._join(t, lan, nodes, place)))
        last = max(participant["joinsAt"] for participant in self.participants)

        def measure():
            lan.measure()
            for sender, receiver in self._flows():
                before[sender, receiver] = _received(nodes[receiver], nodes[sender])

        actions.append((last + _SETTLING, measure))
        return sorted(actions, key=lambda action: action[0])

    def _join(self, t, lan, nodes, place):
        participant = self.participants[place]
        video = participant["video"]
        if video:
            video = t.footage.video if video == "640x360" else f"test:{video}@30"
        more = (["--video-bitrate", str(participant["videoKbps"])] if participant["videoKbps"]
                else [])

        def join():
            nodes[participant["name"]] = t.node(
                participant["name"], *more, host=lan.hosts[place], video=video or "none",
                audio=t.footage.speech if participant["speaks"] else "none",
                record=participant["watches"], watches=False)
        return join

    def _place(self, name):
        return next(place for place, one in enumerate(self.participants) if one["name"] == name)

    def _flows(self):
        return [(one["name"], other["name"])
                for one in self.participants for other in self.participants
                if one is not other and one["video"] and other["watches"]]


def _order(lan, place, way, conditions):
    return lambda: lan.hosts[place].impair(**{way: conditions})


def _received(node, other):
    """The latest that a node has reported of what it receives of another one."""
    reports = [(event["at"], peer["in"]) for event in node.all("stats")
               for peer in event["peers"] if peer["member"] == other.id and peer["in"]]
    if not reports:
        return {"frames": 0, "audioLostPercent": 0.0, "seconds": 0.0}
    at, latest = reports[-1]
    # The first report comes within a second of the first packet.
    return latest | {"seconds": at - reports[0][0] + 0.5}


def _audio_lost_percent(before, after):
    """The share of a flow's audio that was lost between two reports, of which each has the share
    since the flow began, half a second more or less."""
    lost = [one["audioLostPercent"] * one["seconds"] for one in (before, after)]
    return max(lost[1] - lost[0], 0) / max(after["seconds"] - before["seconds"], 1)
