// Unit tests of session/: formats of results, widths of characters, settings, cancelling.

#include "session/session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/display_width.h"
#include "base/memory_budget.h"
#include "compiler/compiler.h"
#include "kernels/kernels.h"
#include "mpi/cluster.h"
#include "session/engine.h"
#include "session/settings.h"
#include "shell/result_text.h"
#include "shell/statistics_text.h"
#include "tests/mpi/lone_cluster.h"
#include "tests/session/session_answer.h"

namespace tessera {
namespace {

std::unique_ptr<Session> Open() {
  SessionOptions options;
  options.device = DeviceChoice::kHost;
  options.threads = 2;
  Result<std::unique_ptr<Session>> session = Session::Open(options);
  EXPECT_TRUE(session.ok());
  return std::move(*session);
}

std::string Format(ResultFormat format, const std::string& sql) {
  ResultTextOptions options;
  options.format = format;
  return Answer(Open().get(), sql, options);
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth(""), 0u);
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("äöü"), 3u);
  EXPECT_EQ(DisplayWidth("日本"), 4u);
  EXPECT_EQ(DisplayWidth("e\xCC\x81"), 1u);  // e and a combining acute accent
  EXPECT_EQ(DisplayWidth("\xF0\x9F\x98\x80"), 2u);
  EXPECT_EQ(DisplayWidth("👩\u200D👩\u200D👧"), 2u);  // joined to one
  EXPECT_EQ(DisplayWidth("👍\U0001F3FD!"), 3u);     // with a tone of skin
  EXPECT_EQ(DisplayWidth("🇩🇪🇫🇷"), 4u);             // two flags
  EXPECT_EQ(DisplayWidth("❤\uFE0F"), 2u);          // a symbol that is to be an emoji
  EXPECT_EQ(DisplayWidth("❤"), 1u);
  EXPECT_EQ(DisplayWidth("ｶﾅ"), 2u);                    // of half width
  EXPECT_EQ(DisplayWidth("한\u1112\u1161\u11AB"), 4u);  // a syllable, and one in three parts
}

TEST(DisplayWidth, CutsWithAnEllipsis) {
  EXPECT_EQ(CutToWidth("abcdef", 6), "abcdef");
  EXPECT_EQ(CutToWidth("abcdef", 4), "abc…");
  EXPECT_EQ(CutToWidth("日本語", 4), "日…");  // a wide character is not cut in half
  EXPECT_EQ(CutToWidth("日本語", 5), "日本…");
  EXPECT_EQ(CutToWidth("x", 0), "");
  EXPECT_EQ(CutToWidth("👩\u200D👩\u200D👧👩\u200D👩\u200D👧ab", 4), "👩\u200D👩\u200D👧…");
}

TEST(DisplayWidth, MakesAnyBytesPrintable) {
  EXPECT_EQ(Printable("a\nb\tc\r\x1b[0m"), "a\\nb\\tc\\r\\x1b[0m");
  EXPECT_EQ(Printable("\xFFx\xC3"), "\xEF\xBF\xBDx\xEF\xBF\xBD");
  EXPECT_EQ(ValidUtf8("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
  EXPECT_EQ(ValidUtf8("ü日\xF0\x9F\x98\x80"), "ü日\xF0\x9F\x98\x80");
}

TEST(ResultText, NamesOfFormats) {
  for (const char* name : {"box", "csv", "json", "markdown", "line", "column", "list"}) {
    const std::optional<ResultFormat> format = FindResultFormat(name);
    ASSERT_TRUE(format.has_value()) << name;
    EXPECT_STREQ(ResultFormatName(*format), name);
  }
  EXPECT_FALSE(FindResultFormat("xml").has_value());
}

TEST(ResultText, FloatsThatJsonHasNoNumberFor) {
  EXPECT_EQ(Format(ResultFormat::kJson,
                   "SELECT CAST('NaN' AS DOUBLE PRECISION) AS a, CAST('-Infinity' AS DOUBLE PRECISION) AS b"),
            "[{\"a\":\"NaN\",\"b\":\"-Infinity\"}]\n");
}

TEST(ResultText, CsvTellsNullFromEmpty) {
  EXPECT_EQ(Format(ResultFormat::kCsv, "SELECT NULL AS a, '' AS b, 'x' AS c"), "a,b,c\n,\"\",x\n");
}

TEST(ResultText, EveryRowOfManyBatches) {
  const std::unique_ptr<Session> session = Open();
  Answer(session.get(), "CREATE TABLE t (x INTEGER)");
  Answer(session.get(), "INSERT INTO t VALUES (0)");
  for (int i = 0; i < 16; ++i) Answer(session.get(), "INSERT INTO t SELECT x + " + std::to_string(1 << i) + " FROM t");
  for (const ResultFormat format : {ResultFormat::kCsv, ResultFormat::kLine, ResultFormat::kMarkdown,
                                    ResultFormat::kBox, ResultFormat::kColumn, ResultFormat::kList}) {
    ResultTextOptions options;
    options.format = format;
    const std::string out = Answer(session.get(), "SELECT x FROM t ORDER BY x", options);
    EXPECT_GE(std::count(out.begin(), out.end(), '\n'), 65536);
    EXPECT_NE(out.find("65535"), std::string::npos);
  }
  // The box of a long result has its first and last rows, whatever the batches are.
  for (const size_t rows : {1, 2, 3, 40, 65535}) {
    ResultTextOptions options;
    options.format = ResultFormat::kBox;
    options.max_rows = rows;
    const std::string out = Answer(session.get(), "SELECT x FROM t ORDER BY x", options);
    EXPECT_NE(out.find(rows > 1 ? "│     0 │" : "│ 0 │"), std::string::npos) << rows;
    EXPECT_EQ(out.find("│ 65535 │") != std::string::npos, rows > 1) << rows;
    EXPECT_EQ(static_cast<size_t>(std::count(out.begin(), out.end(), '\n')), rows + 6) << rows;
    EXPECT_NE(out.find("65536 rows (" + std::to_string(rows) + " shown)"), std::string::npos);
  }
}

TEST(ResultText, TextsGiveWayBeforeDatesAndNumbers) {
  const std::unique_ptr<Session> session = Open();
  const std::string sql =
      "SELECT DATE '2026-11-28' AS day, TIMESTAMP '2026-11-28 12:34:56' AS moment, 12345678901 AS number, repeat('long "
      "', 30) "
      "AS t, repeat('other ', 9) AS u, 7 AS a_long_name_of_a_number";
  ResultTextOptions options;
  for (const ResultFormat format : {ResultFormat::kBox, ResultFormat::kColumn}) {
    options.format = format;
    const auto widest = [](std::string_view text) {
      size_t width = 0;
      for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
        width = std::max(width, DisplayWidth(text.substr(0, end)));
      return width;
    };
    const size_t least = format == ResultFormat::kBox ? 10 + 19 + 11 + 3 * 8 + 6 * 3 + 1 : 10 + 19 + 11 + 3 * 8 + 5 * 2;
    for (size_t width = 200; width >= least; --width) {
      options.max_width = width;
      const std::string out = Answer(session.get(), sql, options);
      EXPECT_LE(widest(out), width);
      for (const char* value : {"2026-11-28 ", "2026-11-28 12:34:56", "12345678901"})
        EXPECT_NE(out.find(value), std::string::npos) << width << "\n" << out;
    }
    // Where texts have no more to give, dates do, but never numbers.
    options.max_width = least - 5;
    const std::string out = Answer(session.get(), sql, options);
    EXPECT_LE(widest(out), least - 5);
    EXPECT_NE(out.find("…"), std::string::npos);
    EXPECT_NE(out.find("12345678901"), std::string::npos) << out;
    options.max_width = 20;
    // A column is left out whole, and the last one is as wide as its number.
    const std::string narrow = Answer(session.get(), sql, options);
    EXPECT_LE(widest(narrow), 20U);
    EXPECT_NE(narrow.find("6 columns (1 shown)"), std::string::npos) << narrow;
    EXPECT_EQ(narrow.find("1234"), std::string::npos) << narrow;
    options.max_width = 5;
    EXPECT_NE(Answer(session.get(), "SELECT 12345678901 AS n", options).find("12345678901"), std::string::npos);
    const std::string both = Answer(session.get(), "SELECT 12345678901 AS a, 12345678902 AS b", options);
    EXPECT_NE(both.find("12345678901"), std::string::npos) << both;
  }
}

TEST(ResultText, SeveralThreadsWriteWhatOneWrites) {
  const std::unique_ptr<Session> session = Open();
  const std::string sql =
      "SELECT g, CASE WHEN g % 3 > 0 THEN 'text, ' || chr(230) || g END AS t, CASE WHEN g % 5 > 0 THEN g / 8.0 END AS "
      "f, "
      "g % 7 = 0 AS b, CAST(g AS DECIMAL(9,2)) / 4 AS d, DATE '2000-01-01' + g AS day, repeat('|\"', g % 4) AS q FROM "
      "generate_series(1, 40000) s(g)";
  for (const ResultFormat format :
       {ResultFormat::kCsv, ResultFormat::kJson, ResultFormat::kMarkdown, ResultFormat::kLine, ResultFormat::kList}) {
    ResultTextOptions options;
    options.format = format;
    for (const char* null_text : {"", "2000-01-06"}) {
      options.null_text = null_text;
      Answer(session.get(), "SET threads = 1");
      const std::string one = Answer(session.get(), sql, options);
      EXPECT_GT(std::count(one.begin(), one.end(), '\n'), 39'999);
      Answer(session.get(), "SET threads = 3");
      EXPECT_TRUE(Answer(session.get(), sql, options) == one) << ResultFormatName(format);
    }
  }
}

TEST(ResultText, ErrorOfTheReaderEndsTheStatement) {
  const std::unique_ptr<Session> session = Open();
  auto writer = MakeResultText({}, [](std::string_view) { return Status(ErrorCode::kIo, "nobody there"); }, {});
  Status status = session->Execute("SELECT 1", writer.get());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "nobody there");
}

TEST(Session, CommandTags) {
  const std::unique_ptr<Session> session = Open();
  EXPECT_EQ(Answer(session.get(), "CREATE TABLE t (x INTEGER, s TEXT)"), "CREATE TABLE");
  EXPECT_EQ(Answer(session.get(), "INSERT INTO t VALUES (1, 'a'), (2, NULL)"), "INSERT 0 2");
  EXPECT_EQ(Answer(session.get(), "INSERT INTO t SELECT x + 2, s FROM t"), "INSERT 0 2");
  EXPECT_EQ(session->last_timing().rows, 2u);
  EXPECT_EQ(Answer(session.get(), "SELECT count(*) AS n FROM t"), "n\n4\n");
  EXPECT_EQ(session->last_timing().rows, 1u);
  EXPECT_GT(session->last_timing().total, 0.0);
  EXPECT_EQ(Answer(session.get(), "DROP TABLE t"), "DROP TABLE");
  EXPECT_EQ(Answer(session.get(), "SET threads = 1"), "SET");
}

TEST(Session, AnErrorEndsATransaction) {
  const std::unique_ptr<Session> session = Open();
  Answer(session.get(), "CREATE TABLE t (x INTEGER)");
  EXPECT_EQ(Answer(session.get(), "BEGIN"), "BEGIN");
  EXPECT_EQ(Answer(session.get(), "INSERT INTO t VALUES (1)"), "INSERT 0 1");
  EXPECT_NE(Answer(session.get(), "nonsense").find("syntax error"), std::string::npos);
  for (const char* sql :
       {"INSERT INTO t VALUES (1)", "DROP TABLE t", "SELECT 1", "SET threads = 1", "nonsense", "BEGIN"})
    EXPECT_NE(Answer(session.get(), sql).find("current transaction is aborted"), std::string::npos) << sql;
  EXPECT_EQ(Answer(session.get(), "COMMIT"), "ROLLBACK");
  EXPECT_EQ(Answer(session.get(), "COMMIT"), "COMMIT");
  EXPECT_EQ(session->TakeWarning(), "there is no transaction in progress");
  EXPECT_EQ(Answer(session.get(), "INSERT INTO t VALUES (2)"), "INSERT 0 1");
  EXPECT_EQ(Answer(session.get(), "SELECT x FROM t"), "x\n2\n");
}

/// What a statement answers with values for its parameters, as CSV without a header.
std::string AnswerWith(Session* session, const std::string& sql, const std::vector<Value>& values) {
  std::string out;
  ResultTextOptions options;
  options.format = ResultFormat::kCsv;
  options.headers = false;
  const auto take = [&](std::string_view text) {
    out += text;
    return Status::Ok();
  };
  const auto writer = MakeResultText(options, take, [&](const std::string& tag) { out += tag; });
  const Status status = session->Execute(sql, values, writer.get());
  return status.ok() ? out : FormatError(status, sql);
}

Value Untyped(const std::string& text) {
  Value v = Value::Text(text);
  v.type = {};
  return v;
}

TEST(Session, ValuesOfParameters) {
  const std::unique_ptr<Session> session = Open();
  Answer(session.get(), "CREATE TABLE t (a INTEGER, d DATE, p DECIMAL(8,2))");
  const Value one = Value::Int(SqlType::Of(TypeId::kInteger), 1);
  const std::string insert = "INSERT INTO t VALUES ($1, $2, ?3)";
  EXPECT_EQ(AnswerWith(session.get(), insert, {one, Untyped("2026-01-31"), Untyped("1.5")}), "INSERT 0 1");
  EXPECT_EQ(AnswerWith(session.get(), insert, {Value::Null({}), Value::Null({}), Value::Null({})}), "INSERT 0 1");
  const std::string select = "SELECT * FROM t WHERE a = ? OR d > ? OR p < ?";
  EXPECT_EQ(AnswerWith(session.get(), select, {one, Value::Null({}), Value::Null({})}), "1,2026-01-31,1.50\n");
  EXPECT_FALSE(session->last_timing().kept);
  EXPECT_EQ(AnswerWith(session.get(), select, {one, Value::Null({}), Value::Null({})}), "1,2026-01-31,1.50\n");
  EXPECT_TRUE(session->last_timing().kept);
  EXPECT_TRUE(session->last_was_query());
  EXPECT_EQ(AnswerWith(session.get(), select, {Untyped("7"), Untyped("2026-02-01"), Untyped("0.5")}), "");
  EXPECT_EQ(AnswerWith(session.get(), "UPDATE t SET p = p + $2 WHERE a = $1", {one, one}), "UPDATE 1");
  EXPECT_EQ(AnswerWith(session.get(), "DELETE FROM t WHERE p = $1", {Untyped("2.50")}), "DELETE 1");
  EXPECT_EQ(AnswerWith(session.get(), "SELECT count(*) FROM t", {}), "1\n");
  // Errors point to the parameter.
  EXPECT_EQ(AnswerWith(session.get(), "SELECT $1, $2", {one}),
            "ERROR:  there is no parameter $2\n"
            "LINE 1: SELECT $1, $2\n"
            "                   ^\n"
            "HINT:  The last one is $1.");
  EXPECT_EQ(AnswerWith(session.get(), "SELECT * FROM t WHERE a = $1", {Untyped("x")}),
            "ERROR:  invalid input syntax for type integer: \"x\"\n"
            "LINE 1: SELECT * FROM t WHERE a = $1\n"
            "                                  ^");
  // The values were those of one statement.
  EXPECT_NE(Answer(session.get(), "SELECT $1").find("there is no parameter $1"), std::string::npos);
}

TEST(Session, ErrorsOfPreparedStatements) {
  const std::unique_ptr<Session> session = Open();
  Answer(session.get(), "CREATE TABLE t (a INTEGER)");
  EXPECT_EQ(Answer(session.get(), "PREPARE q (integer) AS SELECT a / $1, $2 FROM tt"),
            "ERROR:  table \"tt\" does not exist\n"
            "LINE 1: PREPARE q (integer) AS SELECT a / $1, $2 FROM tt\n"
            "                                                      ^");
  EXPECT_EQ(Answer(session.get(), "PREPARE query AS SELECT a + $1 FROM t"), "PREPARE");
  EXPECT_EQ(Answer(session.get(), "EXECUTE qury (1)"),
            "ERROR:  prepared statement \"qury\" does not exist\n"
            "HINT:  Perhaps you meant prepared statement \"query\".");
  EXPECT_EQ(Answer(session.get(), "EXECUTE query (1, 2)"),
            "ERROR:  wrong number of parameters for prepared statement \"query\": expected 1, got 2\n"
            "HINT:  They are INTEGER.");
  EXPECT_EQ(Answer(session.get(), "EXECUTE query (DATE '2026-01-01')"),
            "ERROR:  parameter $1 of type DATE cannot be coerced to the expected type INTEGER\n"
            "LINE 1: EXECUTE query (DATE '2026-01-01')\n"
            "                       ^\n"
            "HINT:  You will need to rewrite or cast the expression.");
  Answer(session.get(), "INSERT INTO t VALUES (1)");
  EXPECT_EQ(Answer(session.get(), "EXECUTE query (2147483647)"), "ERROR:  integer out of range");
  EXPECT_NE(Answer(session.get(), "EXPLAIN (PROGRAM) EXECUTE query (5)").find("scan t"), std::string::npos);
  EXPECT_NE(Answer(session.get(), "EXPLAIN ANALYZE EXECUTE query (5)").find("compiled in"), std::string::npos);
  // They are the session's own.
  EXPECT_NE(Answer(Open().get(), "EXECUTE query (1)").find("There are none in this session"), std::string::npos);
  Answer(session.get(), "CREATE OR REPLACE TABLE t AS SELECT DATE '2026-01-01' AS b");
  EXPECT_EQ(Answer(session.get(), "EXECUTE query (1)"),
            "ERROR:  column \"a\" does not exist (in prepared statement \"query\")");
  EXPECT_EQ(Answer(session.get(), "DEALLOCATE query"), "DEALLOCATE");
  EXPECT_EQ(Answer(session.get(), "DEALLOCATE ALL"), "DEALLOCATE ALL");
}

TEST(Session, ErrorsChangeNothing) {
  const std::unique_ptr<Session> session = Open();
  Answer(session.get(), "CREATE TABLE t (x INTEGER NOT NULL)");
  Answer(session.get(), "INSERT INTO t VALUES (1), (2147483647)");
  EXPECT_NE(Answer(session.get(), "INSERT INTO t VALUES (3), (NULL)").find("ERROR"), std::string::npos);
  EXPECT_NE(Answer(session.get(), "INSERT INTO t SELECT x + 1 FROM t").find("out of range"), std::string::npos);
  EXPECT_EQ(Answer(session.get(), "SELECT count(*) AS n FROM t"), "n\n2\n");
}

TEST(Session, Settings) {
  const std::unique_ptr<Session> session = Open();
  EXPECT_EQ(Answer(session.get(), "SHOW threads"), "threads\n2\n");
  Answer(session.get(), "SET threads TO 3");
  EXPECT_EQ(session->threads(), 3);
  EXPECT_NE(Answer(session.get(), "SET threads = 0").find("from 1 to"), std::string::npos);
  EXPECT_NE(Answer(session.get(), "SET threds = 1").find("Perhaps you meant \"threads\""), std::string::npos);
  EXPECT_NE(Answer(session.get(), "SHOW thread").find("Perhaps you meant \"threads\""), std::string::npos);
  EXPECT_NE(Answer(session.get(), "SHOW ALL").find("lock_timeout"), std::string::npos);
  Answer(session.get(), "SET tablet_rows = 3");
  Answer(session.get(), "CREATE TABLE a (x INTEGER)");
  Answer(session.get(), "CREATE TABLE b (x INTEGER) WITH (tablet_rows = 5)");
  const std::shared_ptr<const Snapshot> tables = *session->Tables();
  EXPECT_EQ(tables->Find("a")->schema.tablet_rows, 3u);
  EXPECT_EQ(tables->Find("b")->schema.tablet_rows, 5u);
}

/// What other ranks are told of a query.
struct Told {
  std::string program;
  std::string settings;
};

/// Keeps what the other rank would be told.
class RecordingCluster final : public LoneCluster {
 public:
  RecordingCluster() : LoneCluster(2) {}

  Told told;

 protected:
  void Tell(const ClusterQuery& query, const vm::RunOptions& options) override {
    told.program = query.program->Serialize();
    told.settings.clear();
    const auto tell = [&](const auto& value) { told.settings += std::to_string(static_cast<uint64_t>(value)) + " "; };
    tell(query.choices.use_gpu);
    tell(query.choices.gpu_required);
#define CLUSTER_SETTING(Type, Name, Default, Greatest, Comment) tell(query.settings.Name);
#include "mpi/cluster_settings.def"
#define RUN_SETTING(Type, Name, Default, Greatest, Comment) tell(options.settings.Name);
#include "vm/run/run_settings.def"
  }
};

/// SET, SHOW, RESET of one setting, and how ranks learn of it. `value` is not its default.
void CheckSetting(const std::string& name, const std::string& value, RanksLearn ranks, const std::string& bad_value) {
  SCOPED_TRACE(name);
  RecordingCluster cluster;
  SessionOptions options;
  options.cluster = &cluster;
  const std::unique_ptr<Session> session = std::move(*Session::Open(options));
  Answer(session.get(), "CREATE TABLE t (x INTEGER)");
  Answer(session.get(), "INSERT INTO t VALUES (0)");
  for (int i = 0; i < 10; ++i) Answer(session.get(), "INSERT INTO t SELECT x + " + std::to_string(1 << i) + " FROM t");
  Answer(session.get(), "CREATE TABLE u WITH (tablet_rows = 100) AS SELECT x FROM t");
  Answer(session.get(), "CREATE TABLE v AS SELECT x / 32 AS x FROM generate_series(0, 9999) s(x)");
  if (name == "device") Answer(session.get(), "SET gpu_min_rows = 0");  // so that auto is the GPU, if there is one
  const auto show = [&] { return Answer(session.get(), "SHOW " + name); };
  const auto tell = [&] {
    // Grids, pruned or not, loops, joins that are exchanged, not invisible, or by ranges of tablets, and runs are different programs.
    Answer(session.get(),
           "SELECT count(*) FROM t a, t b WHERE a.x < b.x AND a.x > b.x - 3 AND "
           "(DATE '2024-01-01' + a.x)::timestamptz > '2024-01-01'");
    Told told = cluster.told;
    Answer(session.get(), "SELECT count(*) FROM t a, t b WHERE a.x = b.x AND b.x % 2 = 0");
    told.program += cluster.told.program;
    Answer(session.get(), "SELECT count(*) FROM u a, u b WHERE a.x = b.x");
    told.program += cluster.told.program;
    Answer(session.get(), "SELECT x % 3, sum(x) FROM v GROUP BY 1");
    told.program += cluster.told.program;
    return told;
  };
  const std::string shown = show();
  EXPECT_EQ(shown.substr(0, name.size() + 1), name + "\n");
  EXPECT_NE(shown, name + "\n" + value + "\n");
  const Told told = tell();
  ASSERT_FALSE(told.program.empty());

  EXPECT_EQ(Answer(session.get(), "SET " + name + " = '" + value + "'"), "SET");
  EXPECT_EQ(show(), name + "\n" + value + "\n");
  EXPECT_NE(Answer(session.get(), "SHOW ALL").find("\n" + name + "," + value + ","), std::string::npos);
  const Told changed = tell();
  EXPECT_EQ(changed.program != told.program, ranks == RanksLearn::kInProgram);
  // Without a GPU ranks are not told to use one.
  if (GpuCount() > 0 || (name != "device" && name != "gpu_min_rows")) {
    EXPECT_EQ(changed.settings != told.settings, ranks == RanksLearn::kWithQuery)
        << told.settings << "| " << changed.settings;
  }

  const std::string refused = Answer(session.get(), "SET " + name + " = '" + bad_value + "'");
  EXPECT_NE(refused.find("invalid value for parameter \"" + name + "\": \"" + bad_value + "\""), std::string::npos)
      << refused;
  EXPECT_NE(refused.find("HINT: "), std::string::npos) << refused;
  EXPECT_EQ(show(), name + "\n" + value + "\n") << "an error changes nothing";

  EXPECT_EQ(Answer(session.get(), "SET " + name + " = DEFAULT"), "SET");
  EXPECT_EQ(show(), shown);
  const Told again = tell();
  EXPECT_EQ(again.program, told.program);
  EXPECT_EQ(again.settings, told.settings);
}

TEST(Session, EachSettingIsSetShownResetAndTold) {
  const auto last = [](std::string_view values) { return std::string(values.substr(values.rfind(' ') + 1)); };
  size_t rows = 0;
#define TESSERA_INTEGER_SETTING(name, default_value, least, greatest, ranks, description) \
  CheckSetting(#name, std::to_string(std::max<int64_t>(7, least)), RanksLearn::k##ranks,  \
               std::to_string(int64_t{least} - 1));                                       \
  ++rows;
#define TESSERA_SIZE_SETTING(name, default_value, least, ranks, description) \
  CheckSetting(#name, "1073741824", RanksLearn::k##ranks, "1 furlong");      \
  ++rows;
#define TESSERA_CHOICE_SETTING(name, type, default_value, values, ranks, description)                                \
  CheckSetting(#name, std::string_view(#name) == "device" ? "host" : last(values), RanksLearn::k##ranks, "neither"); \
  ++rows;
#define TESSERA_SWITCH_SETTING(name, default_value, ranks, description)                 \
  CheckSetting(#name, (default_value) ? "off" : "on", RanksLearn::k##ranks, "neither"); \
  ++rows;
#define TESSERA_ZONE_SETTING(name, ranks, description)                              \
  CheckSetting(#name, "Europe/Berlin", RanksLearn::k##ranks, "Middle Earth/Shire"); \
  ++rows;
#include "session/settings.def"
  EXPECT_EQ(rows, AllSettings().size());
  EXPECT_TRUE(std::is_sorted(AllSettings().begin(), AllSettings().end(),
                             [](const Setting& a, const Setting& b) { return std::string_view(a.name) < b.name; }));
}

TEST(Session, CancelOfNothingIsForgotten) {
  const std::unique_ptr<Session> session = Open();
  session->Cancel();
  EXPECT_EQ(Answer(session.get(), "SELECT 1 AS a"), "a\n1\n");
}

TEST(Session, CancelReachesOnlyTheRunningStatement) {
  const std::unique_ptr<Session> session = Open();
  Answer(session.get(), "CREATE TABLE t (x INTEGER)");
  Answer(session.get(), "INSERT INTO t VALUES (1), (2), (3)");
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) session->Cancel();
  });
  int cancelled = 0;
  // (On a busy machine the other thread may get to nothing for a while.)
  for (int i = 0; i < 300 || (cancelled == 0 && i < 100'000); ++i) {
    const std::string out = Answer(session.get(), "SELECT count(*) AS n FROM t");
    if (out != "n\n3\n") {
      ++cancelled;
      EXPECT_EQ(out, "ERROR:  canceling statement due to user request");
    }
  }
  stop = true;
  other.join();
  EXPECT_GT(cancelled, 0);
  // Whatever was under way when the loop ended must not reach a later statement.
  EXPECT_EQ(Answer(session.get(), "SELECT count(*) AS n FROM t"), "n\n3\n");
}

TEST(Session, CancelStopsALongQuery) {
  const std::unique_ptr<Session> session = Open();
  Answer(session.get(), "CREATE TABLE t (x INTEGER)");
  Answer(session.get(), "INSERT INTO t VALUES (1)");
  for (int i = 0; i < 14; ++i) Answer(session.get(), "INSERT INTO t SELECT x FROM t");
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    session->Cancel();
  });
  const auto start = std::chrono::steady_clock::now();
  // 2^42 pairs.
  EXPECT_EQ(Answer(session.get(), "SELECT count(*) FROM t a, t b, t c WHERE a.x = b.x AND b.x = c.x"),
            "ERROR:  canceling statement due to user request");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  other.join();
  EXPECT_EQ(Answer(session.get(), "SELECT count(*) AS n FROM t"), "n\n16384\n");
}

/// "(INTEGER, TEXT) -> a BIGINT, b DATE", or the error.
std::string Described(Session* session, const std::string& sql, std::vector<SqlType> declared = {}) {
  const Result<StatementDescription> d = session->Describe(sql, std::move(declared));
  if (!d.ok()) return FormatError(d.status(), sql);
  std::string out, columns;
  for (const SqlType& type : d->parameters)
    out += (out.empty() ? "(" : ", ") + (type.id == TypeId::kNull ? "?" : type.ToString());
  if (!out.empty()) out += ") -> ";
  for (const vm::ResultColumn& c : d->columns)
    columns += (columns.empty() ? "" : ", ") + c.name + " " + c.type.ToString();
  return out + (columns.empty() ? "nothing" : columns);
}

TEST(Describe, ColumnsAndParametersOfQueries) {
  const std::unique_ptr<Session> session = Open();
  Session* const s = session.get();
  Answer(s, "CREATE TABLE t (a INTEGER PRIMARY KEY, b DECIMAL(8,2), d DATE, s VARCHAR(10))");
  EXPECT_EQ(Described(s, "SELECT a, b * 2 AS c, s FROM t ORDER BY d"), "a INTEGER, c DECIMAL(18,2), s VARCHAR(10)");
  EXPECT_EQ(Described(s, "SELECT a FROM t WHERE a = $1 AND s = $2 AND d < $3 LIMIT $4"),
            "(INTEGER, TEXT, DATE, BIGINT) -> a INTEGER");
  EXPECT_EQ(Described(s, "SELECT ? + 1.5 AS x, ?::timestamptz AS y"),
            "(DECIMAL(38,6), TIMESTAMP WITH TIME ZONE) -> x DECIMAL(38,6), y TIMESTAMP WITH TIME ZONE");
  EXPECT_EQ(Described(s, "SELECT $1 AS x", {SqlType::Of(TypeId::kDate)}), "(DATE) -> x DATE");
  EXPECT_EQ(Described(s, "VALUES (1, 'x')"), "column1 INTEGER, column2 TEXT");
  EXPECT_EQ(Described(s, "SELECT b FROM t TABLESAMPLE bernoulli ($1) WHERE a = $2"),
            "(DOUBLE PRECISION, ?) -> b DECIMAL(8,2)");
  // It has not run.
  EXPECT_EQ(Described(s, "SELECT 1 / 0 * a AS x FROM t, (VALUES (1)) v (y)"), "x INTEGER");
}

TEST(Describe, OtherStatements) {
  const std::unique_ptr<Session> session = Open();
  Session* const s = session.get();
  Answer(s, "CREATE TABLE t (a INTEGER PRIMARY KEY, b DECIMAL(8,2))");
  EXPECT_EQ(Described(s, "INSERT INTO t VALUES ($1, $2)"), "(INTEGER, DECIMAL(8,2)) -> nothing");
  EXPECT_EQ(Described(s, "INSERT INTO t VALUES ($1, $2) RETURNING b, a + 1 AS n"),
            "(INTEGER, DECIMAL(8,2)) -> b DECIMAL(8,2), n INTEGER");
  EXPECT_EQ(Described(s, "UPDATE t SET b = $2 WHERE a = $1 RETURNING *"),
            "(INTEGER, DECIMAL(8,2)) -> a INTEGER, b DECIMAL(8,2)");
  EXPECT_EQ(Described(s, "DELETE FROM t WHERE a < ?"), "(INTEGER) -> nothing");
  EXPECT_EQ(Described(s, "SHOW threads"), "threads TEXT");
  EXPECT_EQ(Described(s, "SHOW ALL"), "name TEXT, setting TEXT, description TEXT");
  EXPECT_EQ(Described(s, "EXPLAIN SELECT a FROM t"), "QUERY PLAN TEXT");
  for (const char* sql : {"CREATE TABLE t (a INTEGER)", "DROP TABLE nowhere", "SET threads = 1", "BEGIN", "COMMIT",
                          "VACUUM INTO '/nowhere/x'", "PREPARE p AS SELECT 1", "COPY t FROM STDIN"})
    EXPECT_EQ(Described(s, sql), "nothing") << sql;
  EXPECT_EQ(Answer(s, "SELECT count(*) AS n FROM t"), "n\n0\n");
  Answer(s, "PREPARE p (integer) AS SELECT a, b FROM t WHERE a = $1");
  EXPECT_EQ(Described(s, "EXECUTE p (1)"), "a INTEGER, b DECIMAL(8,2)");
}

TEST(Describe, ErrorsEndATransaction) {
  const std::unique_ptr<Session> session = Open();
  Session* const s = session.get();
  EXPECT_EQ(Described(s, "SELECT x FROM nowhere").substr(0, 38), "ERROR:  table \"nowhere\" does not exist");
  EXPECT_EQ(s->Describe("SELEC 1").status().position(), 0);
  EXPECT_EQ(Answer(s, "SELECT 1 AS n"), "n\n1\n");
  Answer(s, "BEGIN");
  EXPECT_FALSE(s->Describe("SELECT x FROM nowhere").ok());
  EXPECT_STREQ(s->Describe("SELECT 1").status().sqlstate(), "25P02");
  EXPECT_EQ(Described(s, "ROLLBACK"), "nothing");
  Answer(s, "ROLLBACK");
  EXPECT_EQ(Described(s, "SELECT 1 AS n"), "n INTEGER");
}

TEST(Describe, WaitsForRowsThatItsColumnsComeFrom) {
  const std::unique_ptr<Session> session = Open();
  Session* const s = session.get();
  Answer(s, "CREATE TABLE t (k TEXT, v INTEGER)");
  Answer(s, "BEGIN");
  Answer(s, "INSERT INTO t VALUES ('x', 1), ('y', 2)");
  EXPECT_EQ(Described(s, "PIVOT t ON k USING sum(v)"), "x BIGINT, y BIGINT");
  Answer(s, "COMMIT");
}

/// Takes pairs of integers, up to a number of them.
class Pairs final : public ResultWriter {
 public:
  explicit Pairs(size_t most) : most_(most) {}
  Status Begin(const std::vector<vm::ResultColumn>&) override { return Status::Ok(); }
  Status Rows(RowBatch&& batch) override {
    for (size_t r = 0; r < batch.rows; ++r) pairs.emplace_back(batch.columns[0].fixed[r], batch.columns[1].fixed[r]);
    return pairs.size() < most_ ? Status::Ok() : Status(ErrorCode::kIo, "enough");
  }
  Status End() override { return Status::Ok(); }
  Status Done(const std::string&) override { return Status::Ok(); }
  Status Text(const std::string&) override { return Status::Ok(); }
  std::vector<std::pair<int64_t, int64_t>> pairs;

 private:
  const size_t most_;
};

/// Table t with 0 .. 2^bits - 1.
void MakeNumbers(Session* session, int bits) {
  Answer(session, "CREATE TABLE t (x INTEGER)");
  Answer(session, "INSERT INTO t VALUES (0)");
  for (int i = 0; i < bits; ++i) Answer(session, "INSERT INTO t SELECT x + " + std::to_string(1 << i) + " FROM t");
}

TEST(Session, RowsOfAProductComeLongBeforeItsEnd) {
  const std::unique_ptr<Session> session = Open();
  MakeNumbers(session.get(), 16);
  for (const char* strategy : {"grid", "loop"}) {
    Answer(session.get(), std::string("SET join_strategy = ") + strategy);
    // 2^32 and 2^48 rows. Only some are read: a tile of one table with each row of the other.
    for (const char* sql : {"SELECT a.x, b.x FROM t a, t b", "SELECT a.x, b.x FROM t a, t b, t c"}) {
      Pairs out(3'000'000);
      EXPECT_EQ(session->Execute(sql, &out).message(), "enough") << strategy;
      const bool third = std::string(sql).find("t c") != std::string::npos;
      for (size_t k = 0; k < out.pairs.size(); ++k) {
        const auto tile_row = static_cast<int64_t>(k % 2048), b = static_cast<int64_t>(third ? 0 : k / 2048);
        ASSERT_EQ(out.pairs[k], std::pair(tile_row, b)) << strategy << ": " << sql << ", row " << k;
      }
    }
  }
}

TEST(Session, StreamedRowsAreAllThere) {
  const std::unique_ptr<Session> session = Open();
  MakeNumbers(session.get(), 12);
  for (const char* strategy : {"grid", "loop", "auto"}) {
    Answer(session.get(), std::string("SET join_strategy = ") + strategy);
    std::vector<const char*> queries = {"SELECT a.x, b.x FROM t a, t b WHERE b.x < 2000"};
    if (strategy != std::string("grid"))
      queries.push_back("SELECT a.x, b.x FROM t a LEFT JOIN t b ON a.x >= 0 AND b.x < 2000");
    for (const std::string sql : queries) {
      Pairs all(SIZE_MAX);
      ASSERT_TRUE(session->Execute(sql, &all).ok());
      EXPECT_EQ(session->last_statistics().sections.back().rows_out, all.pairs.size());
      Pairs some(SIZE_MAX);
      ASSERT_TRUE(session->Execute(sql + " LIMIT 1000000 OFFSET 1500001", &some).ok());
      EXPECT_EQ(session->last_timing().rows, 1'000'000u);
      ASSERT_EQ(some.pairs.size(), 1'000'000u);
      EXPECT_TRUE(std::equal(some.pairs.begin(), some.pairs.end(), all.pairs.begin() + 1'500'001))
          << strategy << ": " << sql;
      ASSERT_EQ(all.pairs.size(), 4096u * 2000) << strategy << ": " << sql;
      std::vector<bool> seen(all.pairs.size());
      for (const auto& [a, b] : all.pairs) seen[static_cast<size_t>(a * 2000 + b)] = true;
      EXPECT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<ptrdiff_t>(seen.size()))
          << strategy << ": " << sql;
    }
  }
}

/// Sessions of one engine over one directory, one for each thread.
class SharedEngine : public testing::Test {
 protected:
  SharedEngine() { Answer(Open(2).get(), "CREATE TABLE t (thread INTEGER, x INTEGER) WITH (tablet_rows = 64)"); }
  ~SharedEngine() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<Session> Open(int threads) {
    SessionOptions options;
    options.directory = directory_;
    options.device = DeviceChoice::kAuto;
    options.threads = threads;
    options.engine = engine_;
    Result<std::unique_ptr<Session>> session = Session::Open(options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    return std::move(*session);
  }

  const std::string directory_ =
      (std::filesystem::temp_directory_path() / ("shared_engine_" + std::to_string(getpid()))).string();
  const std::shared_ptr<Engine> engine_ = std::make_shared<Engine>();
};

TEST_F(SharedEngine, SessionsReadAndWriteAtOnce) {
  constexpr int kThreads = 6, kRounds = 12, kRows = 100;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const std::unique_ptr<Session> session = Open(1 + thread % 3);
      const auto expect = [&](const std::string& sql, const std::string& answer) {
        const std::string got = Answer(session.get(), sql);
        if (got == answer) return;
        ++wrong;
        ADD_FAILURE() << sql << "\n" << got << "instead of\n" << answer;
      };
      const std::string me = std::to_string(thread);
      for (int round = 1; round <= kRounds; ++round) {
        expect("INSERT INTO t SELECT " + me + ", x FROM generate_series(1, " + std::to_string(kRows) + ") s(x)",
               "INSERT 0 " + std::to_string(kRows));
        // Its own rows are all there, and of each of the others' changes all or none. (One that is done has a row a round.)
        const int mine = round * kRows;
        expect("SELECT count(*) AS n, sum(x) AS s FROM t WHERE thread = " + me,
               "n,s\n" + std::to_string(mine) + "," + std::to_string(round * kRows * (kRows + 1) / 2) + "\n");
        expect("SELECT count(*) AS n FROM (SELECT thread FROM t GROUP BY thread HAVING count(*) % " +
                   std::to_string(kRows) + " NOT IN (0, " + std::to_string(kRounds) + ")) halves",
               "n\n0\n");
        expect("SELECT max(n) AS m FROM (SELECT x, count(*) AS n FROM t WHERE thread = " + me + " GROUP BY x) g",
               "m\n" + std::to_string(round) + "\n");
      }
      expect("DELETE FROM t WHERE thread = " + me + " AND x > 1", "DELETE " + std::to_string(kRounds * (kRows - 1)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Answer(Open(2).get(), "SELECT thread, count(*) AS n, max(x) AS x FROM t GROUP BY thread ORDER BY thread"),
            "thread,n,x\n0,12,1\n1,12,1\n2,12,1\n3,12,1\n4,12,1\n5,12,1\n");
}

TEST_F(SharedEngine, FilesAreOpenOnce) {
  const std::unique_ptr<Session> one = Open(1), two = Open(1);
  Answer(one.get(), "INSERT INTO t SELECT 0, x FROM generate_series(1, 100) s(x)");
  const auto tablet = [](Session* session) { return (*session->Tables())->Find("t")->tablets[0].get(); };
  EXPECT_EQ(tablet(one.get()), tablet(two.get()));
  // A change by one is seen by the other, and one of its own engine has its own.
  Answer(two.get(), "DELETE FROM t WHERE x <= 50");
  EXPECT_EQ(Answer(one.get(), "SELECT count(*) AS n FROM t"), "n\n50\n");
}

TEST_F(SharedEngine, LimitsOfTheProcessAreThoseOfAllSessions) {
  const uint64_t before = MemoryLimit();
  const std::unique_ptr<Session> one = Open(1), two = Open(1);
  const std::string shown = Answer(two.get(), "SHOW memory_limit");
  Answer(one.get(), "SET memory_limit = '1GB'");
  EXPECT_EQ(Answer(two.get(), "SHOW memory_limit"), "memory_limit\n1073741824\n");
  // Another setting of another session, and a new one, leave it.
  Answer(two.get(), "SET lock_timeout = 5000");
  const std::unique_ptr<Session> three = Open(1);
  EXPECT_EQ(MemoryLimit(), uint64_t{1} << 30);
  Answer(two.get(), "RESET memory_limit");
  EXPECT_EQ(Answer(one.get(), "SHOW memory_limit"), shown);
  SetMemoryLimit(before);
}

TEST_F(SharedEngine, GpuTurnsWaitForEachOther) {
  std::atomic<bool> cancel{false};
  Result<Engine::GpuTurn> turn = engine_->WaitForGpu(0, cancel);
  ASSERT_TRUE(turn.ok());
  EXPECT_TRUE(engine_->WaitForGpu(0, cancel).ok());  // the same thread
  std::thread other([&] {
    const Result<Engine::GpuTurn> waits = engine_->WaitForGpu(0, cancel);
    EXPECT_FALSE(waits.ok());
    EXPECT_EQ(waits.status().code(), ErrorCode::kCancelled);
  });
  cancel = true;
  other.join();
  *turn = {};
  cancel = false;
  std::thread next([&] { EXPECT_TRUE(engine_->WaitForGpu(0, cancel).ok()); });
  next.join();
}

TEST(Session, GpuThatIsNotThere) {
  SessionOptions options;
  options.device = DeviceChoice::kGpu;
  Result<std::unique_ptr<Session>> session = Session::Open(options);
  if (session.ok()) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(session.status().code(), ErrorCode::kDevice);
}

TEST(StatisticsText, Bytes) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(999), "999 B");
  EXPECT_EQ(BytesText(1000), "1.00 KB");
  EXPECT_EQ(BytesText(23'456'789), "23.5 MB");
  EXPECT_EQ(BytesText(1.5e12), "1.50 TB");
}

}  // namespace
}  // namespace tessera
