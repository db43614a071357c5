#include "cli/line_file.h"

#include "tests/cli/cli_test.h"

using namespace convoy;
using namespace convoy::cli;

TEST_CASE("line files are there after each line, new ones empty what was") {
  TemporaryFolder folder;
  std::string path = folder.path("a/b/log.jsonl");
  LineFile file(path);
  file.write("one");
  CHECK(folder.read("a/b/log.jsonl") == "one\n");
  file.write("two");
  CHECK(folder.read("a/b/log.jsonl") == "one\ntwo\n");
  LineFile again(path);
  CHECK(folder.read("a/b/log.jsonl").empty());
}

TEST_CASE("line files go on after the lines that are kept") {
  TemporaryFolder folder;
  std::string path = folder.write("log", "keep\nkeep\ndrop\nkeep\n");
  LineFile file(path, [](const std::string& line) { return line == "keep"; });
  file.write("new");
  CHECK(folder.read("log") == "keep\nkeep\nnew\n");
}

TEST_CASE("a line that was cut by a crash is not kept") {
  TemporaryFolder folder;
  std::string path = folder.write("log", "keep\nke");
  LineFile file(path, [](const std::string&) { return true; });
  file.write("new");
  CHECK(folder.read("log") == "keep\nnew\n");
}

TEST_CASE("going on without a file starts one") {
  TemporaryFolder folder;
  LineFile file(folder.path("log"), [](const std::string&) { return true; });
  file.write("new");
  CHECK(folder.read("log") == "new\n");
}

TEST_CASE("files that cannot be written are a resource error with the path") {
  auto kind_and_text = [](auto call) {
    try {
      call();
    } catch (const Error& error) {
      return std::string(name(error.kind())) + ": " + error.text();
    }
    return std::string("nothing was thrown");
  };
  CHECK(kind_and_text([] { LineFile file("/dev/null/log"); }) ==
        "resource: --log: cannot write /dev/null/log: Not a directory");
  CHECK(kind_and_text([] { LineFile("/dev/full").write("line"); }) ==
        "resource: cannot write 5 bytes to /dev/full: No space left on device");
}
