# SPDX-License-Identifier: BSD-2-Clause
"""usage: test_ladder.py HCASIM [--pictures FOLDER]

Opens the ladders of docs/howto/ladder.md in a headless Chromium, from a file, and uses them as a reader does:
clicks a message, reads the panel, searches, zooms, moves by keys. Exit status 77: there is no Chromium.
"""
import pathlib
import shutil
import sys
import tempfile
import unittest

import ladders
import webdriver

SKIPPED = 77
HCASIM, PICTURES = "", None
SHOWN = "return document.querySelectorAll('#drawing [data-event]').length"


class Ladder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        cls.browser = webdriver.Browser(pathlib.Path(cls.folder.name) / "profile")

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def open(self, name):
        """Opens a ladder and chooses its message. Returns the story and the message's number."""
        trace, page = (pathlib.Path(self.folder.name) / f"{name}.{suffix}" for suffix in ("jsonl", "html"))
        ladders.simulate(HCASIM, name, trace)
        result = ladders.explain(HCASIM, page, trace)
        self.assertEqual(result.returncode, 0, result.stderr)
        story = ladders.read_page(page)
        number = ladders.find(story, name)
        self.assertIsNotNone(number, f"the seed does not show it any more; ladders.py HCASIM {name} tells which do")
        self.browser.open(page.as_uri())
        self.browser.run("document.getElementById('messages').scrollTop = arguments[0] * 44", number)
        self.settle()       # otherwise the list may be drawn anew between finding and clicking
        self.browser.click(f'[data-message="{number}"]')
        self.settle()
        if PICTURES:
            self.browser.press("f")
            self.browser.run("select(arguments[0])", ladders.telling(story, number))
            self.settle()
            self.browser.screenshot(PICTURES / f"ladder-{name}.png")
            self.browser.run("layout.alone = false; layout.lay(); chooseMessage(arguments[0])", number)
            self.settle()
        return story, number

    def settle(self):
        """Waits until the page has drawn what it was told."""
        self.browser.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def tearDown(self):
        errors = [message for message in self.browser.messages() if "favicon" not in message]
        self.assertEqual(errors, [])

    def panel(self):
        return self.browser.text("#panel").lower()

    def test_a_write_with_a_lost_packet(self):
        story, number = self.open("write")
        self.assertIn("1 lost", self.panel())
        self.assertIn("repeated (nak psn sequence error)", self.panel())
        lost = next(arrow for arrow in ladders.packets(story, story["messages"][number]) if arrow["lost"])
        again = next(arrow for arrow in ladders.packets(story, story["messages"][number]) if arrow["repeated"])
        self.browser.run("select(arguments[0])", again["sent"])
        self.settle()
        self.assertGreaterEqual(self.browser.run("return document.querySelectorAll('#drawing .repeated').length"), 1)
        self.assertIn("repeated: nak psn sequence error", self.panel())
        self.browser.run("select(arguments[0])", lost["sent"])
        self.settle()
        self.assertEqual(self.browser.run("return document.querySelectorAll('#drawing .lost .cross').length"), 1)
        self.browser.click(f'#drawing [data-event="{lost["sent"]}"] .cross')
        self.assertIn("lost: never sent (fault 1: drop write nth 2)", self.panel())
        self.assertIn("ackreq", self.panel())
        event = next(at for at in story["messages"][number]["events"] if story["events"][at]["kind"] == "lost")
        self.assertEqual(self.browser.run(f"return document.querySelectorAll('#drawing [data-event=\"{event}\"] .mark').length"), 1)

    def test_a_read_with_a_lost_response(self):
        story, number = self.open("read")
        self.assertIn("an earlier response is missing", self.panel())
        message = story["messages"][number]
        kinds = [story["events"][at]["kind"] for at in message["events"]]
        self.assertEqual((kinds[0], kinds[-1]), ("post", "poll"))
        self.browser.press("f")     # only this message
        self.settle()
        self.assertEqual(self.browser.run("return layout.rows.length"), len(kinds))
        self.browser.press("f")
        self.browser.press("escape")
        self.assertIn("nothing is selected", self.panel())

    def test_a_rendezvous(self):
        story, number = self.open("rendezvous")
        self.assertIn("rc_read_request", self.panel())
        self.browser.type("#search", "READ_RESP")
        self.settle()
        sought = [at for at, event in enumerate(story["events"]) if event["kind"] == "sent" and "READ_RESP" in event["title"]]
        self.assertEqual(self.browser.text("#hits"), f"{len(sought)} hits")
        self.browser.press("enter")
        self.assertEqual(self.browser.text("#hits"), f"1 of {len(sought)}")
        self.assertIn("read_resp", self.browser.text("#panel h3").lower())
        psn = story["events"][sought[0]]["data"]["psn"]
        self.browser.run("document.getElementById('search').value = ''")
        self.browser.type("#search", f"psn {psn} read_resp")
        self.settle()
        self.assertEqual(self.browser.run("return hits.length"),
                         sum(story["events"][at]["data"]["psn"] == psn for at in sought))

    def test_a_dc_session(self):
        story, number = self.open("dc")
        self.assertIn("dc_ack", self.panel())
        packet = next(arrow["sent"] for arrow in ladders.packets(story, story["messages"][number]))
        self.browser.run("select(arguments[0])", packet)
        self.assertIn("session_of", self.panel())       # the DC extended transport header
        first = story["messages"][number]["events"][0]
        self.browser.run("select(arguments[0])", first)
        self.assertEqual(self.browser.run("return painter.selected"), first)
        self.browser.press("down")
        self.assertGreater(self.browser.run("return painter.selected"), first)
        self.browser.press("q")     # a line for each QP
        self.settle()
        self.assertGreater(self.browser.run("return layout.lanes.length"), 2)
        before = self.browser.run("return layout.height")
        self.browser.click("#closer")
        self.assertGreater(self.browser.run("return layout.height"), before)
        self.browser.click("#scale")
        self.settle()
        self.assertGreater(self.browser.run(SHOWN), 0)

    def test_a_frame_in_flow_tables(self):
        story, number = self.open("steering")
        steps = [at for at in story["messages"][number]["events"] if story["events"][at]["kind"] == "flow"]
        self.assertIn("vlan_pop", self.panel())
        self.browser.run("select(arguments[0])", steps[0])
        self.settle()
        self.assertIn("nic_tx", self.panel())
        self.assertIn("of group", self.panel())
        self.browser.press("f")     # only this message
        self.settle()
        self.assertEqual(self.browser.run("return document.querySelectorAll('#drawing .flow').length"), len(steps))
        self.browser.run("select(arguments[0])", ladders.packets(story, story["messages"][number])[0]["sent"])
        self.settle()
        self.assertIn("ethertype", self.panel())

    def test_only_what_is_visible_is_drawn(self):
        self.open("write")
        self.browser.run("""
            const more = [];
            for (let i = 0; i < 60000; i++) {
                more.push({t: 1e9 + i * 500, host: i % 2, kind: "post", qpn: 66, message: -1, title: `post ${i}`, data: {}});
            }
            story.events.push(...more);
            layout.rowOf = null;
            layout.lay();""")
        took = self.browser.run("const begin = performance.now(); drawNow(); select(story.events.length - 1);"
                                "drawNow(); return performance.now() - begin")
        self.assertLess(took, 500)
        self.assertLess(self.browser.run(SHOWN), 400)
        self.assertIn("post 59999", self.panel())


def main():
    global HCASIM, PICTURES
    if not (shutil.which("chromedriver") and shutil.which("chromium")):
        print("there is no chromium, or no chromedriver")
        return SKIPPED
    HCASIM = sys.argv.pop(1)
    if sys.argv[1:2] == ["--pictures"]:
        PICTURES = pathlib.Path(sys.argv[2])
        del sys.argv[1:3]
    return unittest.main(exit=False).result.wasSuccessful() is False


if __name__ == "__main__":
    sys.exit(main())
