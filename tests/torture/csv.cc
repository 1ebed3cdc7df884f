// Mutated CSV: files of random records with quotes, line ends, byte order marks, zero bytes, broken UTF-8 and long
// fields in odd places, loaded by COPY under options that fit or do not. A COPY that fails leaves the table as it was,
// and says in which line; what a COPY has loaded comes back the same through COPY TO and another COPY FROM.
//
// A trial is a child process that loads some files.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "session/session.h"
#include "tests/torture/campaign.h"

namespace tessera {
namespace {

constexpr int kFilesOfATrial = 20;

/// All values of a result; no two different results have the same text.
class Collector final : public ResultWriter {
 public:
  Status Begin(const std::vector<vm::ResultColumn>&) override { return Status::Ok(); }
  Status Rows(RowBatch&& batch) override {
    std::string value;
    for (size_t row = 0; row < batch.rows; ++row) {
      for (const ColumnVector& column : batch.columns) {
        value.clear();
        if (!column.IsNull(row)) AppendText(column, row, &value);
        text += column.IsNull(row) ? "NULL;" : fmt::format("{}:{};", value.size(), value);
      }
      text += '\n';
    }
    return Status::Ok();
  }
  Status End() override { return Status::Ok(); }
  Status Done(const std::string&) override { return Status::Ok(); }
  Status Text(const std::string&) override { return Status::Ok(); }

  std::string text;
};

struct Shape {
  const char* columns;
  std::vector<std::vector<const char*>> values;  ///< of each column
};

const std::vector<const char*> kTexts = {"",
                                         "x",
                                         "a b",
                                         "\"\"",
                                         "\"\"\"\"",
                                         "\"a,b\"",
                                         "\"a\nb\"",
                                         "\"a\r\nb\"",
                                         "'q'",
                                         "\\N",
                                         "NULL",
                                         "\"\r\"",
                                         "\xC3\xA4",
                                         "\xEF\xBB\xBFz",
                                         "\"x\"y\"z\"",
                                         "PAR1",
                                         "\\\"",
                                         "a\\",
                                         "\t",
                                         "\xF0\x9F\x98\x80"};
const std::vector<const char*> kNumbers = {"0",           "1",  "-7",  " 42 ", "", "2147483647",
                                           "-2147483648", "+5", "007", "1e3",  "x"};
const std::vector<const char*> kDecimals = {"0", "1.25", "-99999.99", "", ".5", "3.", "0.005", "1e2", "123456789"};
const std::vector<const char*> kFloats = {"0", "1e300", "-0", "NaN", "Infinity", "", "0.1", "1e-320", "5."};
const std::vector<const char*> kDates = {"2000-02-29", "1970-01-01", "",        "0001-01-01",
                                         "9999-12-31", "2001-02-29", "2000-1-1"};
const std::vector<const char*> kBooleans = {"true", "f", "1", "", "no", "maybe"};

const Shape kShapes[] = {
    {"a TEXT, b TEXT", {kTexts, kTexts}},
    {"a TEXT", {kTexts}},
    {"i INTEGER, t TEXT, d DECIMAL(7,2)", {kNumbers, kTexts, kDecimals}},
    {"v VARCHAR(3), f DOUBLE PRECISION, y DATE, z BOOLEAN", {kTexts, kFloats, kDates, kBooleans}},
    {"k BIGINT NOT NULL, w DECIMAL(30,4), t TEXT NOT NULL", {kNumbers, kDecimals, kTexts}},
    {"k INTEGER PRIMARY KEY, t TEXT", {kNumbers, kTexts}},
};

struct Options {
  char delimiter = ',', quote = '"', escape = '"';
  bool header = false;
  const char* null_text = "";

  std::string Sql() const {
    const auto quoted = [](std::string_view text) {
      std::string out = "'";
      for (char c : text) (out += c == '\'' ? "'" : "") += c;
      return out + "'";
    };
    return fmt::format("(DELIMITER {}, QUOTE {}, ESCAPE {}, HEADER {}, NULL {})", quoted({&delimiter, 1}),
                       quoted({&quote, 1}), quoted({&escape, 1}), header, quoted(null_text));
  }
};

class Trial {
 public:
  Trial(Campaign* campaign, const std::string& folder) : campaign_(*campaign), folder_(folder) {}

  int Run() {
    SessionOptions options;
    options.device = DeviceChoice::kHost;
    options.threads = 1 + static_cast<int>(Below(3));
    Result<std::unique_ptr<Session>> opened = Session::Open(options);
    if (!opened.ok()) return Complain("open", opened.status().message());
    session_ = std::move(*opened);
    for (int i = 0; i < kFilesOfATrial; ++i) {
      if (const int status = OneFile(i); status != 0) return status;
    }
    return 0;
  }

 private:
  size_t Below(size_t n) { return static_cast<size_t>(campaign_.Random(n)); }

  int Complain(std::string_view what, std::string_view more) {
    fmt::print("{}\n{}\n", what, more.substr(0, 4000));
    return 1;
  }

  Status Execute(const std::string& sql, std::string* text = nullptr) {
    Collector collector;
    Status status = session_->Execute(sql, &collector);
    if (text != nullptr) *text = std::move(collector.text);
    return status;
  }

  Options AnyOptions() {
    Options o;
    o.delimiter = ",,,|;\t"[Below(6)];
    o.quote = "\"\"\"'"[Below(4)];
    o.escape = Below(4) == 0 ? '\\' : o.quote;
    o.header = Below(3) == 0;
    o.null_text = std::vector<const char*>{"", "", "\\N", "NULL"}[Below(4)];
    return o;
  }

  std::string AnyFile(const Shape& shape, const Options& o) {
    const char* const line_end = std::vector<const char*>{"\n", "\n", "\r\n", "\r"}[Below(4)];
    const size_t rows = Below(20) == 0 ? 3000 + Below(9000) : Below(12);
    std::string text = Below(5) == 0 ? "\xEF\xBB\xBF" : "";
    for (size_t row = 0; row <= rows; ++row) {
      if (row == 0 && !o.header) continue;
      for (size_t c = 0; c < shape.values.size(); ++c) {
        if (c > 0) text += o.delimiter;
        // Most values fit, so that some files load.
        const std::vector<const char*>& values = shape.values[c];
        std::string value = values[Below(Below(8) == 0 ? values.size() : std::min<size_t>(values.size(), 4))];
        if (c == 0 && values == kNumbers && Below(4) > 0) value = std::to_string(row);
        if (o.quote != '"') std::replace(value.begin(), value.end(), '"', o.quote);
        text += value;
      }
      if (row < rows || Below(3) > 0) text += line_end;
    }
    return text;
  }

  void Mutate(std::string* text) {
    static constexpr std::string_view kPieces[] = {
        "\"",   "'",    "\n",           "\r",   "\r\n", ",",    "|",        "\\", "\0",   "\xEF\xBB\xBF",
        "\xFF", "\xC3", "\xED\xA0\x80", "\"\"", "\t",   "PAR1", "\x1f\x8b", " ",  "\n\n", "\\.\n",
        "0",    "-"};
    for (size_t n = Below(4); n > 0; --n) {
      const size_t at = Below(text->size() + 1);
      const size_t length = Below(std::min<size_t>(text->size() - at, 40) + 1);
      switch (Below(8)) {
        case 0:
        case 1:
        case 2:
          text->insert(at, Below(20) == 0 ? std::string_view("\0", 1) : kPieces[Below(std::size(kPieces))]);
          break;
        case 3:
          text->erase(at, length);
          break;
        case 4:
          text->insert(at, text->substr(at, length));
          break;
        case 5:
          if (at < text->size()) (*text)[at] = static_cast<char>(campaign_.random()());
          break;
        case 6:
          text->resize(at);
          break;
        default:
          text->insert(at, std::string(size_t{1} << Below(19), "x\"\n,\r0"[Below(6)]));
      }
    }
  }

  /// Loads one file. The exit status of the child: 0 if all was well.
  int OneFile(int number) {
    const Shape& shape = kShapes[Below(std::size(kShapes))];
    const Options options = AnyOptions();
    std::string text = AnyFile(shape, options);
    Mutate(&text);
    const std::string file = fmt::format("{}/in{}.csv", folder_, number), out = folder_ + "/out.csv";
    std::ofstream(file, std::ios::binary) << text;
    for (const char* name : {"t", "r"}) {
      (void)Execute(fmt::format("DROP TABLE IF EXISTS {}", name));
      const Status made = Execute(
          fmt::format("CREATE TABLE {} ({}){}", name, shape.columns, Below(3) == 0 ? " WITH (tablet_rows = 7)" : ""));
      if (!made.ok()) return Complain("create", made.message());
    }
    (void)Execute(shape.values.size() == 1 ? "INSERT INTO t VALUES ('first')" : "INSERT INTO t SELECT * FROM t");
    std::string before, after, loaded;
    if (const Status s = Execute("SELECT * FROM t", &before); !s.ok()) return Complain("SELECT", s.message());
    const Options used = Below(6) == 0 ? AnyOptions() : options;
    const Status copied = Execute(fmt::format("COPY t FROM '{}' {}", file, used.Sql()));
    if (const Status s = Execute("SELECT * FROM t", &after); !s.ok()) return Complain("SELECT", s.message());
    if (!copied.ok()) {
      if (copied.code() == ErrorCode::kInternal || copied.code() == ErrorCode::kCorrupt) {
        return Complain("a broken invariant: " + copied.message(), text);
      }
      if (before != after) return Complain("not as it was: " + copied.message(), text);
      return 0;
    }
    if (!after.starts_with(before)) return Complain("the rows before are others", text);
    const Options written = AnyOptions();
    const Status to = Execute(fmt::format("COPY t TO '{}' {}", out, written.Sql()));
    if (!to.ok()) return Complain("COPY TO: " + to.message(), text);
    const Status from = Execute(fmt::format("COPY r FROM '{}' {}", out, written.Sql()));
    if (!from.ok()) return Complain("COPY FROM of what COPY TO wrote: " + from.message() + " " + written.Sql(), after);
    if (const Status s = Execute("SELECT * FROM r", &loaded); !s.ok()) return Complain("SELECT", s.message());
    if (loaded != after) return Complain("not what was written " + written.Sql() + "\n" + after + "---", loaded);
    return 0;
  }

  Campaign& campaign_;
  const std::string folder_;
  std::unique_ptr<Session> session_;
};

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  Campaign campaign("csv", argc, argv);
  while (campaign.Next()) {
    const ScratchFolder folder;
    const ChildEnd end = RunInChild(120, [&] { return Trial(&campaign, folder.path().string()).Run(); });
    if (!end.Returned() || end.status != 0) campaign.Break(end.Text());
  }
  return campaign.Finish();
}
