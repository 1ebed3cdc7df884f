// Thousands of generated queries give the same rows in Tessera and in SQLite, and a text that is no query gives an
// error.
//
// tests/differential/query_generator.h states the mapping between the dialects. Rows are compared exactly for integers, decimals,
// text, dates and booleans and to 1e-9 of their size for floats; in order where ORDER BY fixes it, as multisets
// elsewhere.
//
// Environment:
//   TESSERA_QUERIES=N          queries in all (default 4,000)
//   TESSERA_SEED=N             another series
//   TESSERA_ONLY=N             only query N of the series, shown with its results
//   TESSERA_TEST_DEVICE=gpu    what the kernels can run runs on the GPU
//   TESSERA_SCRIPTS=DIR        also writes the tables and queries of each world to files there, for other engines:
//                              tests/differential/differential_engines.py
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "base/int128.h"
#include "compiler/compiler.h"
#include "session/session.h"
#include "tests/differential/query_generator.h"

namespace tessera {
namespace {

using Kind = PieceKind;

// ---- What runs now, for when it crashes

char g_running[4096];

void OnCrash(int signal_number) {
  // Only what a signal handler may do.
  const char head[] = "\ncrashed in: ";
  (void)!write(STDERR_FILENO, head, sizeof head - 1);
  (void)!write(STDERR_FILENO, g_running, strlen(g_running));
  (void)!write(STDERR_FILENO, "\n", 1);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void SetRunning(const std::string& sql) {
  const size_t n = std::min(sql.size(), sizeof g_running - 1);
  memcpy(g_running, sql.data(), n);
  g_running[n] = 0;
}

// ---- Rows

/// A value of either side. Integers, booleans and decimals (scaled) are `integer`; text, dates and huge decimals are
/// `text`.
struct Cell {
  enum class Is : uint8_t { kNull, kInteger, kFloat, kText };
  Is is = Is::kNull;
  int128_t integer = 0;
  double number = 0;
  std::string text;
};
using Row = std::vector<Cell>;

std::string ToString(const Cell& c) {
  switch (c.is) {
    case Cell::Is::kNull:
      return "NULL";
    case Cell::Is::kInteger:
      return ToText(Value::Wide(SqlType::Decimal(38, 0), c.integer));
    case Cell::Is::kFloat:
      return fmt::format("{}", c.number);
    case Cell::Is::kText:
      return "'" + c.text + "'";
  }
  return {};
}

bool Same(const Cell& a, const Cell& b) {
  if (a.is != b.is) return false;
  switch (a.is) {
    case Cell::Is::kNull:
      return true;
    case Cell::Is::kInteger:
      return a.integer == b.integer;
    case Cell::Is::kFloat: {
      const double size = std::max(std::fabs(a.number), std::fabs(b.number));
      return a.number == b.number || std::fabs(a.number - b.number) <= 1e-9 * size;
    }
    case Cell::Is::kText:
      return a.text == b.text;
  }
  return false;
}

bool Same(const Row& a, const Row& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!Same(a[i], b[i])) return false;
  }
  return true;
}

/// For bringing multisets into one order: floats last and by value, since they may differ a little.
bool Before(const Row& a, const Row& b) {
  for (const bool floats : {false, true}) {
    for (size_t i = 0; i < a.size(); ++i) {
      const Cell &x = a[i], &y = b[i];
      if (x.is != y.is) return x.is < y.is;
      if ((x.is == Cell::Is::kFloat) != floats) continue;
      if (x.integer != y.integer) return x.integer < y.integer;
      if (x.text != y.text) return x.text < y.text;
      if (floats && !Same(x, y)) return x.number < y.number;
    }
  }
  return false;
}

std::string Shown(const std::vector<Row>& rows) {
  std::string out = fmt::format("  {} rows\n", rows.size());
  for (size_t r = 0; r < std::min<size_t>(rows.size(), 12); ++r) {
    out += "   ";
    for (const Cell& c : rows[r]) out += " " + ToString(c);
    out += "\n";
  }
  return out;
}

// ---- Tessera

class Collector : public ResultWriter {
 public:
  /// `outputs`: what the columns are; empty: rows are counted only.
  explicit Collector(const std::vector<Piece>* outputs = nullptr) : outputs_(outputs) {}

  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    if (outputs_ == nullptr) return {};
    if (columns.size() != outputs_->size()) wrong_type = "the number of columns";
    for (size_t i = 0; i < std::min(columns.size(), outputs_->size()); ++i) {
      const Piece& p = (*outputs_)[i];
      const SqlType& type = columns[i].type;
      const bool decimal = p.kind == Kind::kDecimal || p.kind == Kind::kHuge;
      const bool right = decimal                      ? type.id == TypeId::kDecimal && type.scale == p.scale
                         : p.kind == Kind::kInt       ? type.IsInteger()
                         : p.kind == Kind::kDouble    ? type.IsFloat()
                         : p.kind == Kind::kText      ? type.id == TypeId::kText
                         : p.kind == Kind::kDate      ? type.id == TypeId::kDate
                         : p.kind == Kind::kTimestamp ? type.id == TypeId::kTimestamp
                                                      : type.id == TypeId::kBoolean;
      if (!right)
        wrong_type = fmt::format("column {} has type {}, expected {}", i, type.ToString(), QueryGenerator::TypeOf(p));
    }
    return {};
  }
  Status Rows(RowBatch&& batch) override {
    count += batch.rows;
    if (outputs_ == nullptr || !wrong_type.empty()) return {};
    for (size_t r = 0; r < batch.rows; ++r) {
      Row& row = rows.emplace_back(batch.columns.size());
      for (size_t c = 0; c < batch.columns.size(); ++c) row[c] = CellOf(batch.columns[c], r, (*outputs_)[c].kind);
    }
    return {};
  }
  Status End() override { return {}; }
  Status Done(const std::string&) override { return {}; }
  Status Text(const std::string&) override { return {}; }

  std::vector<Row> rows;
  size_t count = 0;
  std::string wrong_type;

 private:
  static Cell CellOf(const ColumnVector& column, size_t row, Kind kind) {
    Cell c;
    if (column.IsNull(row)) return c;
    switch (kind) {
      case Kind::kInt:
      case Kind::kBool:
      case Kind::kDecimal:
        c.is = Cell::Is::kInteger;
        c.integer = column.type.storage() == StorageClass::kWide ? column.wide[row] : column.fixed[row];
        break;
      case Kind::kDouble:
        c.is = Cell::Is::kFloat;
        c.number = column.Float(row);
        break;
      default:
        c.is = Cell::Is::kText;
        AppendText(column, row, &c.text);
    }
    return c;
  }

  const std::vector<Piece>* outputs_;
};

std::unique_ptr<Session> OpenSession() {
  SessionOptions options;
  const char* device = getenv("TESSERA_TEST_DEVICE");
  const bool gpu = device != nullptr && strcmp(device, "gpu") == 0;
  options.device = gpu ? DeviceChoice::kGpu : DeviceChoice::kHost;
  Result<std::unique_ptr<Session>> session = Session::Open(options);
  if (!session.ok()) {
    ADD_FAILURE() << session.status().message();
    return nullptr;
  }
  if (gpu) {
    // What the kernels cannot run yet runs on the host.
    Collector none;
    EXPECT_TRUE((*session)->SetDevice(DeviceChoice::kAuto).ok());
    EXPECT_TRUE((*session)->Execute("SET gpu_min_rows = 0", &none).ok());
  }
  return std::move(*session);
}

Status RunSql(Session* session, const std::string& sql, ResultWriter* out) {
  SetRunning(sql);
  return session->Execute(sql, out);
}

void MustRun(Session* session, const std::string& sql) {
  Collector none;
  const Status status = RunSql(session, sql, &none);
  ASSERT_TRUE(status.ok()) << FormatError(status, sql);
}

// ---- SQLite

class Sqlite {
 public:
  Sqlite() {
    EXPECT_EQ(sqlite3_open(":memory:", &db_), SQLITE_OK);
    sqlite3_create_collation(db_, "decimal_text", SQLITE_UTF8, nullptr, CompareDecimals);
    Function("half_away", 2, [](sqlite3_context* c, int, sqlite3_value** v) {
      if (AnyNull(v, 2)) return;
      const int64_t a = sqlite3_value_int64(v[0]), unit = sqlite3_value_int64(v[1]);
      const int64_t q = a / unit, r = a % unit;
      const bool away = std::abs(r) * 2 >= unit;
      sqlite3_result_int64(c, away ? (a < 0 ? q - 1 : q + 1) : q);
    });
    Function("floor_div", 2, [](sqlite3_context* c, int, sqlite3_value** v) {
      if (AnyNull(v, 2)) return;
      const int64_t a = sqlite3_value_int64(v[0]), unit = sqlite3_value_int64(v[1]);
      sqlite3_result_int64(c, a / unit - (a % unit < 0 ? 1 : 0));
    });
    Function("decimal_text", 2, [](sqlite3_context* c, int, sqlite3_value** v) {
      if (AnyNull(v, 2)) return;
      const int64_t a = sqlite3_value_int64(v[0]);
      const auto scale = static_cast<size_t>(sqlite3_value_int(v[1]));
      std::string digits = std::to_string(std::abs(a));
      if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
      if (scale > 0) digits.insert(digits.size() - scale, ".");
      if (a < 0) digits.insert(0, "-");
      sqlite3_result_text(c, digits.data(), static_cast<int>(digits.size()), SQLITE_TRANSIENT);
    });
    Function("decimal_compare", 2, [](sqlite3_context* c, int, sqlite3_value** v) {
      if (AnyNull(v, 2)) return;
      const int128_t a = DecimalOf(TextOf(v[0])), b = DecimalOf(TextOf(v[1]));
      sqlite3_result_int(c, a < b ? -1 : a > b ? 1 : 0);
    });
    Extreme("decimal_min", StepExtreme<false>);
    Extreme("decimal_max", StepExtreme<true>);
    Function("rint", 1, [](sqlite3_context* c, int, sqlite3_value** v) {
      if (!AnyNull(v, 1)) sqlite3_result_double(c, std::nearbyint(sqlite3_value_double(v[0])));
    });
    Function("float_floor", 1, [](sqlite3_context* c, int, sqlite3_value** v) {
      if (!AnyNull(v, 1)) sqlite3_result_double(c, std::floor(sqlite3_value_double(v[0])));
    });
    Function("float_ceil", 1, [](sqlite3_context* c, int, sqlite3_value** v) {
      if (!AnyNull(v, 1)) sqlite3_result_double(c, std::ceil(sqlite3_value_double(v[0])));
    });
    Function("add_months", 2, [](sqlite3_context* c, int, sqlite3_value** v) {
      if (AnyNull(v, 2)) return;
      const char* text = reinterpret_cast<const char*>(sqlite3_value_text(v[0]));
      int year = 0;
      unsigned month = 0, day = 0;
      if (sscanf(text, "%d-%u-%u", &year, &month, &day) != 3) return sqlite3_result_error(c, "no date", -1);
      using namespace std::chrono;
      const year_month to =
          year_month(std::chrono::year(year), std::chrono::month(month)) + months(sqlite3_value_int(v[1]));
      const unsigned last = static_cast<unsigned>(year_month_day_last(to.year(), month_day_last(to.month())).day());
      const std::string out = fmt::format("{:04}-{:02}-{:02}", static_cast<int>(to.year()),
                                          static_cast<unsigned>(to.month()), std::min(day, last));
      sqlite3_result_text(c, out.data(), static_cast<int>(out.size()), SQLITE_TRANSIENT);
    });
    Execute("PRAGMA case_sensitive_like = ON");
  }
  ~Sqlite() { sqlite3_close(db_); }
  Sqlite(const Sqlite&) = delete;
  Sqlite& operator=(const Sqlite&) = delete;

  void Execute(const std::string& sql) {
    char* message = nullptr;
    const int rc = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, &message);
    EXPECT_EQ(rc, SQLITE_OK) << (message != nullptr ? message : "") << "\n" << sql;
    sqlite3_free(message);
  }

  /// Returns "" or why there are no rows.
  std::string Query(const std::string& sql, const std::vector<Piece>& outputs, std::vector<Row>* rows) {
    // A join that got too large: about a second of work.
    int steps = 0;
    sqlite3_progress_handler(
        db_, 1000, [](void* n) { return ++*static_cast<int*>(n) > 20000 ? 1 : 0; }, &steps);
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) return sqlite3_errmsg(db_);
    std::string problem;
    int rc;
    while (problem.empty() && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
      Row& row = rows->emplace_back(outputs.size());
      for (size_t c = 0; c < outputs.size(); ++c) {
        if (!CellOf(statement, static_cast<int>(c), outputs[c].kind, &row[c])) {
          problem = fmt::format("column {} is no {}", c, QueryGenerator::TypeOf(outputs[c]));
        }
      }
    }
    if (problem.empty() && rc == SQLITE_INTERRUPT) problem = kTooMuchWork;
    if (problem.empty() && rc != SQLITE_DONE) problem = sqlite3_errmsg(db_);
    sqlite3_finalize(statement);
    sqlite3_progress_handler(db_, 0, nullptr, nullptr);
    return problem;
  }

  static constexpr const char* kTooMuchWork = "too much work";

 private:
  using SqliteFunction = void (*)(sqlite3_context*, int, sqlite3_value**);
  void Function(const char* name, int arguments, SqliteFunction f) {
    EXPECT_EQ(
        sqlite3_create_function(db_, name, arguments, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr, f, nullptr, nullptr),
        SQLITE_OK);
  }

  void Extreme(const char* name, SqliteFunction step) {
    EXPECT_EQ(sqlite3_create_function(db_, name, 1, SQLITE_UTF8, nullptr, nullptr, step, FinishExtreme), SQLITE_OK);
  }
  /// MIN and MAX of decimals as text. SQLite keeps the bytes of the state; the text lives in a string of its own.
  template <bool kMax>
  static void StepExtreme(sqlite3_context* c, int, sqlite3_value** v) {
    if (AnyNull(v, 1)) return;
    auto** state = static_cast<std::string**>(sqlite3_aggregate_context(c, sizeof(std::string*)));
    const std::string_view text = TextOf(v[0]);
    if (*state == nullptr) {
      *state = new std::string(text);
    } else if (kMax ? DecimalOf(text) > DecimalOf(**state) : DecimalOf(text) < DecimalOf(**state)) {
      **state = text;
    }
  }
  static void FinishExtreme(sqlite3_context* c) {
    auto** state = static_cast<std::string**>(sqlite3_aggregate_context(c, 0));
    if (state == nullptr || *state == nullptr) return;
    const std::unique_ptr<std::string> text(*state);
    sqlite3_result_text(c, text->data(), static_cast<int>(text->size()), SQLITE_TRANSIENT);
  }

  static std::string_view TextOf(sqlite3_value* v) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(v));
    return {text, static_cast<size_t>(sqlite3_value_bytes(v))};
  }
  static bool AnyNull(sqlite3_value** v, int n) {
    return std::any_of(v, v + n, [](sqlite3_value* x) { return sqlite3_value_type(x) == SQLITE_NULL; });
  }

  /// All have four digits after the point.
  static int128_t DecimalOf(std::string_view text) {
    int128_t v = 0;
    for (char c : text) {
      if (c >= '0' && c <= '9') v = v * 10 + (c - '0');
    }
    return text.starts_with('-') ? -v : v;
  }
  static int CompareDecimals(void*, int n, const void* a, int m, const void* b) {
    const int128_t x = DecimalOf({static_cast<const char*>(a), static_cast<size_t>(n)});
    const int128_t y = DecimalOf({static_cast<const char*>(b), static_cast<size_t>(m)});
    return x < y ? -1 : x > y ? 1 : 0;
  }

  static bool CellOf(sqlite3_stmt* statement, int column, Kind kind, Cell* c) {
    const int type = sqlite3_column_type(statement, column);
    if (type == SQLITE_NULL) return true;
    switch (kind) {
      case Kind::kInt:
      case Kind::kBool:
      case Kind::kDecimal:
        c->is = Cell::Is::kInteger;
        c->integer = sqlite3_column_int64(statement, column);
        return type == SQLITE_INTEGER;
      case Kind::kDouble:
        c->is = Cell::Is::kFloat;
        c->number = sqlite3_column_double(statement, column);
        return type == SQLITE_FLOAT || type == SQLITE_INTEGER;
      default:
        c->is = Cell::Is::kText;
        c->text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
        return type == SQLITE_TEXT;
    }
  }

  sqlite3* db_ = nullptr;
};

// ---- The comparison

uint64_t Number(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  uint64_t n = otherwise;
  if (text != nullptr) std::from_chars(text, text + strlen(text), n);
  return n;
}

/// A file to which lines are written, if there is a directory for it and it has a name.
class Script {
 public:
  explicit Script(const std::string& name) {
    if (const char* directory = getenv("TESSERA_SCRIPTS"); directory != nullptr && !name.empty())
      file_.open(std::string(directory) + "/" + name);
  }
  void Line(const std::string& line) {
    if (file_.is_open()) file_ << line << "\n";
  }

 private:
  std::ofstream file_;
};

void LoadWorld(const World& world, Session* session, Sqlite* sqlite, Script* script) {
  for (const WorldTable& table : world.tables) {
    std::string ours = "CREATE TABLE " + table.name + " (", theirs = ours;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const std::string comma = c == 0 ? "" : ", ";
      ours += comma + table.columns[c].name + " " + table.columns[c].type;
      theirs += comma + table.columns[c].name;
      if (table.columns[c].name == table.primary_key) ours += " PRIMARY KEY";
    }
    MustRun(session, ours + ")");
    script->Line(ours + ");");
    sqlite->Execute(theirs + ")");
    if (table.rows == 0) continue;
    ours = theirs = "INSERT INTO " + table.name + " VALUES ";
    for (size_t r = 0; r < table.rows; ++r) {
      for (size_t c = 0; c < table.columns.size(); ++c) {
        const Piece& value = table.columns[c].values[r];
        const char* separator = c > 0 ? ", " : r > 0 ? "), (" : "(";
        ours += separator + value.ours;
        theirs += separator + value.theirs;
      }
    }
    MustRun(session, ours + ")");
    script->Line(ours + ");");
    sqlite->Execute(theirs + ")");
  }
}

/// Returns "" or what is different.
std::string Compare(const DifferentialQuery& q, std::vector<Row> ours, std::vector<Row> theirs) {
  if (q.ordered || !q.order_keys.empty()) {
    if (ours.size() != theirs.size()) return "the number of rows";
    for (size_t r = 0; r < ours.size(); ++r) {
      if (q.ordered) {
        if (!Same(ours[r], theirs[r])) return fmt::format("row {}", r);
        continue;
      }
      for (size_t key : q.order_keys) {
        if (!Same(ours[r][key], theirs[r][key])) return fmt::format("the order, at row {}", r);
      }
    }
    if (q.ordered) return {};
  }
  std::sort(ours.begin(), ours.end(), Before);
  std::sort(theirs.begin(), theirs.end(), Before);
  if (q.limit < 0) {
    if (ours.size() != theirs.size()) return "the number of rows";
    for (size_t r = 0; r < ours.size(); ++r) {
      if (!Same(ours[r], theirs[r])) return fmt::format("row {} in sorted order", r);
    }
    return {};
  }
  if (ours.size() != std::min(theirs.size(), static_cast<size_t>(q.limit))) return "the number of rows under LIMIT";
  size_t at = 0;
  for (const Row& row : ours) {
    while (at < theirs.size() && !Same(row, theirs[at])) ++at;
    if (at++ >= theirs.size()) return "a row that is not among those without LIMIT";
  }
  return {};
}

class Differential {
 public:
  Differential() : only_(Number("TESSERA_ONLY", UINT64_MAX)), seed_(Number("TESSERA_SEED", 1)) {}

  void RunAll() {
    const uint64_t queries = Number("TESSERA_QUERIES", 4000);
    // tablet_rows 0: chosen at the first load. The large ones have several tiles a tablet, or a tablet and a bit.
    struct Size {
      int tablet_rows, factor;
    };
    constexpr Size kSizes[] = {{0, 1}, {7, 1}, {64, 1}, {3, 1}, {0, 15}, {1, 1}, {31, 1}, {2048, 12}};
    constexpr uint64_t kWorlds = std::size(kSizes);
    for (uint64_t w = 0; w < kWorlds; ++w) {
      const uint64_t first = queries * w / kWorlds, end = queries * (w + 1) / kWorlds;
      if (only_ != UINT64_MAX && (only_ < first || only_ >= end)) continue;
      RunWorld(w, kSizes[w].tablet_rows, kSizes[w].factor, first, end);
      if (testing::Test::HasFatalFailure() || failures_ >= kMostFailures) break;
    }
    Report(queries);
  }

 private:
  static constexpr int kMostFailures = 25;

  void RunWorld(uint64_t number, int tablet_rows, int factor, uint64_t first, uint64_t end) {
    const std::unique_ptr<Session> session = OpenSession();
    ASSERT_NE(session, nullptr);
    session_ = session.get();
    Sqlite sqlite;
    sqlite_ = &sqlite;
    tablet_rows_ = tablet_rows;
    MustRun(session_, fmt::format("SET tablet_rows = {}", tablet_rows));
    const World world = MakeWorld(seed_ * 1000 + number, factor);
    Script tables(fmt::format("world{}.sql", number)), queries(fmt::format("world{}.queries", number));
    queries_ = &queries;
    LoadWorld(world, session_, sqlite_, &tables);
    for (uint64_t i = first; i < end && failures_ < kMostFailures; ++i) {
      if (only_ != UINT64_MAX && i != only_) continue;
      RunOne(world, i);
    }
  }

  void RunOne(const World& world, uint64_t number) {
    number_ = number;
    QueryGenerator generator(world, seed_ * 1'000'003 + number);
    DifferentialQuery q;
    std::vector<Row> theirs;
    std::string problem;
    // A query without rows compares little: three of four are drawn again.
    for (int draw = 0; draw < 6; ++draw) {
      q = generator.Next();
      theirs.clear();
      problem = sqlite_->Query(q.theirs, q.outputs, &theirs);
      ++drawn_;
      if (problem == Sqlite::kTooMuchWork) {
        ++skipped_[problem];
        continue;
      }
      const bool empty = q.limit == 0 || theirs.empty();
      if (!problem.empty() || !empty || (number + static_cast<uint64_t>(draw)) % 4 == 0) break;
    }
    if (problem == Sqlite::kTooMuchWork) return;
    if (!problem.empty()) return Fail(q, "SQLite: " + problem, {}, {});
    // Not from a sorted SELECT DISTINCT: a cast to the column's type is not supported there.
    const bool insert = number % 29 == 0 && q.limit < 0 && !(q.distinct && (q.ordered || !q.order_keys.empty()));
    Collector ours(&q.outputs);
    // Every strategy gives the same rows; what one refuses runs under auto.
    static constexpr const char* kStrategies[] = {"auto", "grid", "loop", "hash"};
    const char* const strategy = kStrategies[number / 4 % std::size(kStrategies)];
    MustRun(session_, fmt::format("SET join_strategy = {}", strategy));
    MustRun(session_, fmt::format("SET grid_pruning = {}", number / 16 % 4 == 0 ? "off" : "on"));
    Status status = insert ? InsertAndRead(q, &ours) : RunSql(session_, q.ours, &ours);
    const bool refused =
        !status.ok() && status.code() == ErrorCode::kUnsupported && status.message().starts_with("join strategy");
    if (refused) {
      MustRun(session_, "SET join_strategy = auto");
      if (insert) MustRun(session_, "DROP TABLE IF EXISTS target");
      status = insert ? InsertAndRead(q, &ours) : RunSql(session_, q.ours, &ours);
    }
    ++strategies_[fmt::format("{}{}", strategy, refused ? ", refused" : "")];
    if (!status.ok()) return Fail(q, FormatError(status, q.ours), {}, theirs);
    if (!ours.wrong_type.empty()) return Fail(q, ours.wrong_type, {}, {});
    if (insert) {
      q.ordered = false;
      q.order_keys.clear();
    }
    problem = Compare(q, ours.rows, theirs);
    if (!problem.empty()) return Fail(q, "different: " + problem, ours.rows, theirs);
    if (only_ != UINT64_MAX) {
      fmt::print("{}\n{}\nTessera\n{}SQLite\n{}", q.ours, q.theirs, Shown(ours.rows), Shown(theirs));
    }
    // How rows are compared: in order, all of them, or as a number of those without LIMIT.
    queries_->Line(fmt::format("{}\t{}\t{}", number, q.ordered ? "ordered" : q.limit < 0 ? "all" : "some", q.ours));
    ++compared_;
    with_rows_ += ours.rows.empty() ? 0 : 1;
    ++shapes_[insert ? "insert" : q.shape];
    if (number % 50 == 0) {
      Collector listing;
      const Status explained = RunSql(session_, "EXPLAIN " + q.ours, &listing);
      if (!explained.ok()) Fail(q, "EXPLAIN: " + explained.message(), {}, {});
    }
  }

  /// INSERT ... SELECT into a new table, then everything that is in it.
  Status InsertAndRead(const DifferentialQuery& q, Collector* out) {
    std::string create = "CREATE TABLE target (";
    for (size_t i = 0; i < q.outputs.size(); ++i) {
      create += fmt::format("{}c{} {}", i == 0 ? "" : ", ", i, QueryGenerator::TypeOf(q.outputs[i]));
    }
    Collector none;
    TESSERA_TRY(RunSql(session_, create + ")", &none));
    Status status = RunSql(session_, "INSERT INTO target " + q.ours, &none);
    if (status.ok()) status = RunSql(session_, "SELECT * FROM target", out);
    TESSERA_TRY(RunSql(session_, "DROP TABLE target", &none));
    return status;
  }

  /// Rows of `a` that `b` lacks.
  static std::vector<Row> Missing(std::vector<Row> a, std::vector<Row> b) {
    std::sort(a.begin(), a.end(), Before);
    std::sort(b.begin(), b.end(), Before);
    std::vector<Row> out;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out), Before);
    return out;
  }

  void Fail(const DifferentialQuery& q, const std::string& what, const std::vector<Row>& ours,
            const std::vector<Row>& theirs) {
    ++failures_;
    ADD_FAILURE() << "query " << number_ << " of seed " << seed_ << ", tablet_rows " << tablet_rows_ << ": " << what
                  << "\n"
                  << q.ours << "\n"
                  << q.theirs << "\nTessera\n"
                  << Shown(ours) << "SQLite\n"
                  << Shown(theirs) << "Only in Tessera\n"
                  << Shown(Missing(ours, theirs)) << "Only in SQLite\n"
                  << Shown(Missing(theirs, ours));
  }

  void Report(uint64_t queries) {
    fmt::print("{} queries compared ({} drawn), {} with rows\n", compared_, drawn_, with_rows_);
    for (const auto& [shape, n] : shapes_) fmt::print("  {:<10} {:>6}\n", shape, n);
    for (const auto& [strategy, n] : strategies_) fmt::print("  join strategy {}: {}\n", strategy, n);
    uint64_t skipped = 0;
    for (const auto& [reason, n] : skipped_) {
      fmt::print("  skipped, {}: {}\n", reason, n);
      skipped += n;
    }
    if (only_ != UINT64_MAX || failures_ > 0) return;
    EXPECT_LE(skipped * 50, drawn_) << "more than 2 % skipped";
    EXPECT_GE(with_rows_ * 10, compared_ * 8) << "less than 80 % have rows";
    EXPECT_GE(compared_ * 50, queries * 49);
  }

  const uint64_t only_, seed_;
  Session* session_ = nullptr;
  Sqlite* sqlite_ = nullptr;
  Script* queries_ = nullptr;
  int tablet_rows_ = 0;
  uint64_t number_ = 0;
  int failures_ = 0;
  uint64_t drawn_ = 0, compared_ = 0, with_rows_ = 0;
  std::map<std::string, uint64_t> shapes_, skipped_, strategies_;
};

class DifferentialTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (int s : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) signal(s, OnCrash);
  }
};

TEST_F(DifferentialTest, SameRowsAsSqlite) { Differential().RunAll(); }

// ---- Robustness

/// Cancels what runs longer than `seconds`; tells whether it had to.
class Watchdog {
 public:
  Watchdog(Session* session, int seconds) : session_(session), seconds_(seconds), thread_([this] { Watch(); }) {}
  ~Watchdog() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void Begin() {
    const std::scoped_lock lock(mutex_);
    deadline_ = std::chrono::steady_clock::now() + std::chrono::seconds(seconds_);
  }
  void End() {
    const std::scoped_lock lock(mutex_);
    deadline_ = kNever;
  }
  bool barked() const { return barked_; }

 private:
  static constexpr auto kNever = std::chrono::steady_clock::time_point::max();
  void Watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return stop_; })) {
      if (std::chrono::steady_clock::now() < deadline_) continue;
      barked_ = true;
      session_->Cancel();
    }
  }

  Session* session_;
  const int seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::chrono::steady_clock::time_point deadline_ = kNever;
  std::atomic<bool> barked_{false};
  std::thread thread_;
};

/// Statements that are wrong in all ways: soups of tokens, and right queries with tokens taken out, doubled, swapped,
/// replaced, or with bytes changed.
class Spoiler {
 public:
  Spoiler(const World& world, uint64_t seed) : world_(world), random_(seed) {}

  std::string Next() {
    switch (Below(10)) {
      case 0:
      case 1:
        return Soup();
      case 2:
        return Extreme();
      case 3:
        return Bytes(QueryGenerator(world_, random_()).Next().ours);
      default:
        return Mutated(QueryGenerator(world_, random_()).Next().ours);
    }
  }

 private:
  uint64_t Below(uint64_t n) { return n == 0 ? 0 : random_() % n; }

  std::string Token() {
    static constexpr const char* kTokens[] = {"SELECT",
                                              "FROM",
                                              "WHERE",
                                              "GROUP",
                                              "BY",
                                              "ORDER",
                                              "HAVING",
                                              "LIMIT",
                                              "OFFSET",
                                              "DISTINCT",
                                              "AND",
                                              "OR",
                                              "NOT",
                                              "NULL",
                                              "IS",
                                              "IN",
                                              "BETWEEN",
                                              "LIKE",
                                              "CASE",
                                              "WHEN",
                                              "THEN",
                                              "ELSE",
                                              "END",
                                              "JOIN",
                                              "ON",
                                              "USING",
                                              "CROSS",
                                              "LEFT",
                                              "AS",
                                              "CAST",
                                              "INTERVAL",
                                              "EXTRACT",
                                              "SUBSTRING",
                                              "FOR",
                                              "ASC",
                                              "DESC",
                                              "NULLS",
                                              "FIRST",
                                              "LAST",
                                              "UNION",
                                              "ALL",
                                              "WITH",
                                              "VALUES",
                                              "INSERT",
                                              "INTO",
                                              "CREATE",
                                              "TABLE",
                                              "EXPLAIN",
                                              "TRUE",
                                              "FALSE",
                                              "DATE",
                                              "TIMESTAMP",
                                              "COALESCE",
                                              "NULLIF",
                                              "FILTER",
                                              "OVER",
                                              "EXISTS",
                                              "ANY",
                                              "ARRAY",
                                              "ROW",
                                              "ESCAPE",
                                              "COLLATE",
                                              "SHOW",
                                              "COPY",
                                              "TO",
                                              "STDOUT",
                                              "(",
                                              ")",
                                              "(",
                                              ")",
                                              ",",
                                              ",",
                                              ".",
                                              ";",
                                              "*",
                                              "+",
                                              "-",
                                              "/",
                                              "%",
                                              "=",
                                              "<>",
                                              "<",
                                              ">",
                                              "<=",
                                              ">=",
                                              "||",
                                              "::",
                                              "[",
                                              "]",
                                              "~",
                                              "@",
                                              "#",
                                              "&",
                                              "|",
                                              "^",
                                              "!",
                                              "?",
                                              ":",
                                              "$1",
                                              "$$",
                                              "'",
                                              "\"",
                                              "0",
                                              "1",
                                              "2",
                                              "-1",
                                              "3.5",
                                              ".5",
                                              "1e10",
                                              "1e999",
                                              "99999999999999999999",
                                              "9223372036854775807",
                                              "2147483648",
                                              "0x10",
                                              "'x'",
                                              "''",
                                              "'%'",
                                              "E'\\n'",
                                              "U&'\\0041'",
                                              "X'41'",
                                              "B'1'",
                                              "'2000-01-01'",
                                              "'NaN'",
                                              "facts",
                                              "dims",
                                              "events",
                                              "small",
                                              "steady",
                                              "vacant",
                                              "a",
                                              "b",
                                              "c",
                                              "id",
                                              "k",
                                              "n",
                                              "w",
                                              "h",
                                              "d",
                                              "t",
                                              "dt",
                                              "ts",
                                              "f",
                                              "s",
                                              "r",
                                              "a.id",
                                              "b.k",
                                              "a.*",
                                              "count(*)",
                                              "count",
                                              "sum",
                                              "avg",
                                              "min",
                                              "max",
                                              "abs",
                                              "round",
                                              "length",
                                              "upper",
                                              "integer",
                                              "bigint",
                                              "text",
                                              "decimal(10,2)",
                                              "decimal(38,38)",
                                              "varchar(3)",
                                              "double precision",
                                              "--",
                                              "/*",
                                              "*/",
                                              "größe",
                                              "\xff",
                                              "\x01"};
    return kTokens[Below(std::size(kTokens))];
  }

  std::string Soup() {
    std::string sql = Below(3) > 0 ? "SELECT" : "";
    const uint64_t n = 1 + Below(40);
    for (uint64_t i = 0; i < n; ++i) sql += " " + Token();
    return sql;
  }

  static std::vector<std::string> Tokens(const std::string& sql) {
    std::vector<std::string> out;
    for (size_t i = 0; i < sql.size();) {
      size_t n = 1;
      if (sql[i] == '\'') {
        while (i + n < sql.size() && sql[i + n] != '\'') ++n;
        ++n;
      } else if (isalnum(static_cast<unsigned char>(sql[i])) != 0 || sql[i] == '_') {
        while (i + n < sql.size() && (isalnum(static_cast<unsigned char>(sql[i + n])) != 0 || sql[i + n] == '_')) ++n;
      }
      if (sql[i] != ' ') out.push_back(sql.substr(i, n));
      i += n;
    }
    return out;
  }

  std::string Mutated(const std::string& sql) {
    std::vector<std::string> tokens = Tokens(sql);
    const uint64_t n = 1 + Below(3);
    for (uint64_t i = 0; i < n && !tokens.empty(); ++i) {
      const size_t at = Below(tokens.size());
      const auto place = tokens.begin() + static_cast<std::ptrdiff_t>(at);
      switch (Below(6)) {
        case 0:
          tokens.erase(place);
          break;
        case 1:
          tokens.insert(place, Token());
          break;
        case 2:
          std::swap(tokens[at], tokens[Below(tokens.size())]);
          break;
        case 3:
          tokens.insert(place, tokens[Below(tokens.size())]);
          break;
        case 4:
          tokens.resize(at);
          break;
        default:
          *place = Token();
      }
    }
    std::string out;
    for (const std::string& t : tokens) out += t + " ";
    return out;
  }

  std::string Bytes(std::string sql) {
    const uint64_t n = 1 + Below(4);
    for (uint64_t i = 0; i < n && !sql.empty(); ++i) sql[Below(sql.size())] = static_cast<char>(Below(256));
    return sql;
  }

  /// k + 0, k + 1, ..., each between `before` and `after`.
  static std::string List(const char* before, const char* after, size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i) out += fmt::format("{}{}k + {}{}", i == 0 ? "" : ", ", before, i, after);
    return out;
  }

  static std::string Repeat(const std::string& text, size_t n) {
    std::string out;
    out.reserve(text.size() * n);
    for (size_t i = 0; i < n; ++i) out += text;
    return out;
  }

  /// Very deep, very long, very many.
  std::string Extreme() {
    const size_t n = size_t{1} << (4 + Below(13));  // 16 .. 65536
    switch (Below(18)) {
      case 0:
        return "SELECT " + Repeat("(", n) + "1" + Repeat(")", n);
      case 1:
        return "SELECT " + Repeat("- ", n) + "1";
      case 2:
        return "SELECT k" + Repeat(" + 1", n) + " FROM facts";
      case 3:
        return "SELECT id FROM facts WHERE " + Repeat("NOT ", n) + "f";
      case 4:
        return "SELECT id FROM facts WHERE k = 1" + Repeat(" OR k = 2 AND n > 1", n);
      case 5:
        return "SELECT " + Repeat("CASE WHEN k > 1 THEN ", n) + "1" + Repeat(" END", n) + " FROM facts";
      case 6:
        return "SELECT id FROM facts WHERE k IN (1" + Repeat(", 2", n) + ")";
      case 7:
        return "SELECT 1" + Repeat(", k", n) + " FROM facts";
      case 8:
        return "SELECT " + Repeat("coalesce(k, ", n) + "1" + Repeat(")", n) + " FROM facts";
      case 9:
        return "SELECT 1 FROM small" + Repeat(", small", std::min<size_t>(n, 200));
      case 10:
        return "SELECT '" + Repeat("x", n) + "' || t FROM facts GROUP BY t" + Repeat(", t", n);
      case 11:
        return "SELECT " + List("", "", n) + " FROM facts";
      case 12:
        return "SELECT " + List("sum(", ")", n) + " FROM facts";
      case 13:
        return "SELECT count(*) FROM facts GROUP BY " + List("", "", n);
      case 14:
        return "SELECT id FROM facts ORDER BY " + List("", "", n);
      case 15:
        return "SELECT id FROM facts WHERE k > 1" + Repeat(" AND k > 1", n) + Repeat(" AND k < 5", n);
      case 16:
        return "SELECT id FROM facts WHERE k NOT IN (" + List("", "", n) + ")";
      default:
        return "SELECT " + Repeat("upper(", n) + "t" + Repeat(")", n) + " FROM facts ORDER BY 1" + Repeat(", 1", n);
    }
  }

  const World& world_;
  std::mt19937_64 random_;
};

TEST_F(DifferentialTest, WrongStatementsGiveErrors) {
  const std::unique_ptr<Session> session = OpenSession();
  ASSERT_NE(session, nullptr);
  MustRun(session.get(), "SET tablet_rows = 3");
  World world = MakeWorld(77, 1);
  // Few rows: a mutation that loses its join condition must not give very many pairs.
  for (WorldTable& table : world.tables) table.rows = std::min<size_t>(table.rows, 4);
  Sqlite sqlite;
  Script none("");
  LoadWorld(world, session.get(), &sqlite, &none);
  Watchdog watchdog(session.get(), 20);
  const uint64_t seed = Number("TESSERA_SEED", 1), cases = std::max<uint64_t>(1000, Number("TESSERA_QUERIES", 0) / 4);
  uint64_t errors = 0, rows = 0;
  for (uint64_t i = 0; i < cases; ++i) {
    const std::string sql = Spoiler(world, seed * 7919 + i).Next();
    Collector out;
    watchdog.Begin();
    const Status status = RunSql(session.get(), sql, &out);
    watchdog.End();
    ASSERT_FALSE(watchdog.barked()) << "case " << i << " of seed " << seed << " did not end:\n" << sql.substr(0, 2000);
    if (status.ok()) {
      ++rows;
      continue;
    }
    ++errors;
    EXPECT_NE(status.code(), ErrorCode::kInternal)
        << "case " << i << " of seed " << seed << ": " << status.message() << "\n"
        << sql.substr(0, 2000);
    EXPECT_NE(status.code(), ErrorCode::kCorrupt)
        << "case " << i << " of seed " << seed << ": " << status.message() << "\n"
        << sql.substr(0, 2000);
    EXPECT_FALSE(status.message().empty());
    EXPECT_FALSE(FormatError(status, sql).empty());
  }
  fmt::print("{} errors, {} that were right after all\n", errors, rows);
  MustRun(session.get(), "SELECT count(*) FROM dims");
}

}  // namespace
}  // namespace tessera
