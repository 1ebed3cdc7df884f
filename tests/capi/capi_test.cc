// The C interface as programs in C use it: what is closed in any order, what is NULL, two threads, cancelling.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "capi/arrow_array.h"
#include "capi/tessera.h"

namespace {

struct Error : tessera_error {
  Error() : tessera_error(TESSERA_ERROR_INIT) {}
  ~Error() { tessera_error_clear(this); }
};

class CInterface : public testing::Test {
 protected:
  CInterface() {
    tessera_options options = TESSERA_OPTIONS_INIT;
    options.threads = 2;
    options.device = "host";
    EXPECT_EQ(tessera_open(nullptr, &options, &database_, &error_), TESSERA_OK);
    EXPECT_EQ(tessera_connect(database_, &connection_, &error_), TESSERA_OK);
  }
  ~CInterface() override {
    tessera_disconnect(connection_);
    tessera_close(database_);
  }

  /// The values of a stream's first column, which is BIGINT; releases it.
  static std::vector<int64_t> Numbers(ArrowArrayStream* rows) {
    std::vector<int64_t> out;
    ArrowArray batch;
    while (rows->get_next(rows, &batch) == 0 && batch.release != nullptr) {
      const auto* values = static_cast<const int64_t*>(batch.children[0]->buffers[1]);
      out.insert(out.end(), values, values + batch.length);
      batch.release(&batch);
    }
    rows->release(rows);
    return out;
  }
  std::vector<int64_t> Query(const char* sql) {
    ArrowArrayStream rows;
    EXPECT_EQ(tessera_query(connection_, sql, &rows, nullptr, &error_), TESSERA_OK) << error_.message;
    return rows.release != nullptr ? Numbers(&rows) : std::vector<int64_t>();
  }
  tessera_statement* Prepare(const char* sql) {
    tessera_statement* statement = nullptr;
    EXPECT_EQ(tessera_prepare(connection_, sql, SIZE_MAX, &statement, nullptr, &error_), TESSERA_OK);
    return statement;
  }

  Error error_;
  tessera_database* database_ = nullptr;
  tessera_connection* connection_ = nullptr;
};

TEST_F(CInterface, StatementsOfAText) {
  const char* text = "SELECT 1::bigint; -- one\nSELECT 2::bigint + $1";
  tessera_statement* statement = nullptr;
  const char* tail = nullptr;
  ASSERT_EQ(tessera_prepare(connection_, text, SIZE_MAX, &statement, &tail, &error_), TESSERA_OK);
  tessera_finalize(statement);
  ASSERT_EQ(tessera_prepare(connection_, tail, SIZE_MAX, &statement, &tail, &error_), TESSERA_OK);
  EXPECT_STREQ(tail, "");
  ASSERT_EQ(tessera_bind_int64(statement, 1, 40, &error_), TESSERA_OK);
  ArrowArrayStream rows;
  int64_t count = 0;
  ASSERT_EQ(tessera_execute(statement, &rows, &count, &error_), TESSERA_OK) << error_.message;
  EXPECT_EQ(count, -1);
  EXPECT_EQ(Numbers(&rows), std::vector<int64_t>{42});
  tessera_finalize(statement);
  ASSERT_EQ(tessera_prepare(connection_, " -- nothing", SIZE_MAX, &statement, &tail, &error_), TESSERA_OK);
  EXPECT_EQ(statement, nullptr);
}

TEST_F(CInterface, ErrorsSayWhere) {
  ArrowArrayStream rows;
  EXPECT_EQ(tessera_query(connection_, "SELECT 1; SELECT x FROM nowhere", &rows, nullptr, &error_), TESSERA_ERROR);
  EXPECT_STREQ(error_.sqlstate, "42P01");
  EXPECT_EQ(error_.position, 24);
  EXPECT_NE(std::strstr(error_.message, "nowhere"), nullptr);
  EXPECT_EQ(rows.release, nullptr);
  EXPECT_EQ(tessera_query(connection_, "SELECT 1", nullptr, nullptr, nullptr), TESSERA_OK);
  tessera_options options = TESSERA_OPTIONS_INIT;
  options.device = "fpga";
  tessera_database* other = nullptr;
  EXPECT_EQ(tessera_open(":memory:", &options, &other, &error_), TESSERA_ERROR);
  EXPECT_STREQ(error_.message, "there is no device \"fpga\"");
  EXPECT_EQ(other, nullptr);
}

TEST_F(CInterface, ParametersAreChecked) {
  tessera_statement* const statement = Prepare("SELECT $1::text, $2::date");
  EXPECT_EQ(tessera_bind_text(statement, 1, "\xE4", SIZE_MAX, &error_), TESSERA_ERROR);
  EXPECT_STREQ(error_.sqlstate, "22021");
  EXPECT_EQ(tessera_bind_bytea(statement, 1, "\xE4", 1, &error_), TESSERA_OK);
  EXPECT_EQ(tessera_bind_date(statement, 2, 2'932'897, &error_), TESSERA_ERROR);
  EXPECT_STREQ(error_.sqlstate, "22008");
  EXPECT_EQ(tessera_bind_int64(statement, 0, 1, &error_), TESSERA_ERROR);
  EXPECT_STREQ(error_.sqlstate, "42P02");
  EXPECT_EQ(tessera_bind_decimal(statement, 1, "1e5x", &error_), TESSERA_ERROR);
  tessera_finalize(statement);
}

TEST_F(CInterface, NullIsAnError) {
  EXPECT_EQ(tessera_query(nullptr, "SELECT 1", nullptr, nullptr, &error_), TESSERA_ERROR);
  EXPECT_STREQ(error_.message, "the connection is NULL");
  EXPECT_EQ(tessera_query(connection_, nullptr, nullptr, nullptr, &error_), TESSERA_ERROR);
  EXPECT_EQ(tessera_execute(nullptr, nullptr, nullptr, &error_), TESSERA_ERROR);
  EXPECT_EQ(tessera_bind_int64(nullptr, 1, 1, nullptr), TESSERA_ERROR);
  EXPECT_EQ(tessera_register(connection_, "t", nullptr, nullptr, &error_), TESSERA_ERROR);
  tessera_close(nullptr);
  tessera_disconnect(nullptr);
  tessera_finalize(nullptr);
  tessera_cancel(nullptr);
}

TEST_F(CInterface, DescribesWithoutRunning) {
  EXPECT_TRUE(Query("CREATE TABLE t (a INTEGER, d DECIMAL(8,2))").empty());
  tessera_statement* const statement = Prepare("INSERT INTO t VALUES ($1, $2) RETURNING d, a");
  ArrowSchema columns, parameters;
  ASSERT_EQ(tessera_describe(statement, &columns, &parameters, &error_), TESSERA_OK);
  ASSERT_EQ(columns.n_children, 2);
  EXPECT_STREQ(columns.children[0]->name, "d");
  EXPECT_STREQ(columns.children[0]->format, "d:8,2");
  ASSERT_EQ(parameters.n_children, 2);
  EXPECT_STREQ(parameters.children[0]->format, "i");
  columns.release(&columns);
  parameters.release(&parameters);
  tessera_finalize(statement);
  EXPECT_EQ(Query("SELECT count(*) FROM t"), std::vector<int64_t>{0});
}

TEST_F(CInterface, WhatIsOpenOutlivesWhatIsClosed) {
  tessera_statement* const statement = Prepare("SELECT n::bigint FROM generate_series(1, 3) s (n) ORDER BY 1");
  tessera_disconnect(connection_);
  tessera_close(database_);
  connection_ = nullptr;
  database_ = nullptr;
  ArrowArrayStream rows, copy;
  ASSERT_EQ(tessera_execute(statement, &rows, nullptr, &error_), TESSERA_OK);
  EXPECT_STREQ(tessera_command_tag(statement), "");
  tessera_finalize(statement);
  ASSERT_EQ(tessera_copy_stream(&rows, &copy, &error_), TESSERA_OK);
  EXPECT_EQ(Numbers(&rows), (std::vector<int64_t>{1, 2, 3}));
  ArrowArray batch;
  ASSERT_EQ(copy.get_next(&copy, &batch), 0);
  copy.release(&copy);
  // A child that is taken out of its batch lives on, too.
  ArrowArray child = *batch.children[0];
  batch.children[0]->release = nullptr;
  batch.release(&batch);
  EXPECT_EQ(static_cast<const int64_t*>(child.buffers[1])[2], 3);
  child.release(&child);
}

TEST_F(CInterface, ConnectionsOfADatabaseInMemory) {
  tessera_connection* other = nullptr;
  ASSERT_EQ(tessera_connect(database_, &other, &error_), TESSERA_OK);
  ASSERT_EQ(tessera_query(other, "CREATE TABLE t AS SELECT 7::bigint AS a", nullptr, nullptr, &error_), TESSERA_OK);
  tessera_disconnect(other);
  EXPECT_EQ(Query("SELECT a FROM t"), std::vector<int64_t>{7});
}

TEST_F(CInterface, RowsIn) {
  ArrowArrayStream rows;
  ASSERT_EQ(tessera_query(connection_, "SELECT n::bigint AS n FROM generate_series(1, 100000) s (n)", &rows, nullptr,
                          &error_),
            TESSERA_OK);
  int64_t count = 0;
  ASSERT_EQ(tessera_register(connection_, "Rows", &rows, &count, &error_), TESSERA_OK) << error_.message;
  EXPECT_EQ(count, 100000);
  EXPECT_EQ(rows.release, nullptr);
  EXPECT_EQ(Query("SELECT sum(n)::bigint FROM \"Rows\""), std::vector<int64_t>{5000050000});
  int found = 0;
  ASSERT_EQ(tessera_has_table(connection_, "Rows", &found, &error_), TESSERA_OK);
  EXPECT_EQ(found, 1);
  ASSERT_EQ(tessera_unregister(connection_, "Rows", &error_), TESSERA_OK);
  ASSERT_EQ(tessera_has_table(connection_, "Rows", &found, &error_), TESSERA_OK);
  EXPECT_EQ(found, 0);
}

TEST_F(CInterface, RowsThatStayWhereTheyAre) {
  ArrowArrayStream rows;
  const char* const query = "SELECT n::bigint AS n, 'text ' || n AS s FROM generate_series(1, 200000) s (n)";
  ASSERT_EQ(tessera_query(connection_, query, &rows, nullptr, &error_), TESSERA_OK);
  int64_t count = 0;
  ASSERT_EQ(tessera_register_frame(connection_, "f", &rows, &count, &error_), TESSERA_OK) << error_.message;
  EXPECT_EQ(count, 200000);
  EXPECT_EQ(rows.release, nullptr);
  EXPECT_EQ(Query("SELECT sum(n)::bigint FROM f"), std::vector<int64_t>{20000100000});
  EXPECT_EQ(Query("SELECT n FROM f WHERE s = 'text 77'"), std::vector<int64_t>{77});
  EXPECT_EQ(tessera_query(connection_, "DELETE FROM f", nullptr, nullptr, &error_), TESSERA_ERROR);
  // Another one takes its place; a table of the session does not go for it.
  ASSERT_EQ(tessera_query(connection_, "SELECT 1::bigint AS n", &rows, nullptr, &error_), TESSERA_OK);
  ASSERT_EQ(tessera_register_frame(connection_, "f", &rows, &count, &error_), TESSERA_OK) << error_.message;
  EXPECT_EQ(Query("SELECT n FROM f"), std::vector<int64_t>{1});
  ASSERT_EQ(tessera_unregister(connection_, "f", &error_), TESSERA_OK);
  EXPECT_EQ(tessera_unregister(connection_, "f", &error_), TESSERA_ERROR);
  EXPECT_TRUE(Query("CREATE TEMP TABLE f (n BIGINT)").empty());
  ASSERT_EQ(tessera_query(connection_, "SELECT 1::bigint AS n", &rows, nullptr, &error_), TESSERA_OK);
  EXPECT_EQ(tessera_register_frame(connection_, "f", &rows, &count, &error_), TESSERA_ERROR);
}

TEST_F(CInterface, EveryTypeGoesOutAndIn) {
  EXPECT_TRUE(
      Query("CREATE TYPE mood AS ENUM ('sad', 'happy');"
            "CREATE TABLE t (b BOOLEAN, s SMALLINT, i INTEGER, l BIGINT, r REAL, d DOUBLE PRECISION, n DECIMAL(8,2),"
            " w DECIMAL(38,3), day DATE, ts TIMESTAMP, tz TIMESTAMPTZ, tm TIME, iv INTERVAL, x TEXT, y BYTEA,"
            " u UUID, m mood);"
            "INSERT INTO t SELECT n % 2 = 0, n, -n, n * 4000000000, n / 8.0, n / 3.0, n / 4.0,"
            " n * 12345678901234567890.123, DATE '0001-01-01' + n, TIMESTAMP '9999-12-31 23:59:59.999999',"
            " TIMESTAMPTZ '1969-12-31 23:59:59.5+00', TIME '00:00:01' + n * INTERVAL '1 second',"
            " n * INTERVAL '1 month -2 days 03:04:05.678', 'text ' || n, '\\x00ff'::bytea,"
            " '00112233-4455-6677-8899-aabbccddeeff', CASE WHEN n % 3 = 0 THEN 'sad' ELSE 'happy' END::mood"
            " FROM generate_series(1, 1000) g (n);"
            "INSERT INTO t (i) SELECT NULL FROM generate_series(1, 7) g (n)")
          .empty());
  ArrowArrayStream rows;
  ASSERT_EQ(tessera_query(connection_, "SELECT * FROM t", &rows, nullptr, &error_), TESSERA_OK);
  ASSERT_EQ(tessera_register(connection_, "back", &rows, nullptr, &error_), TESSERA_OK) << error_.message;
  // (UUID and ENUM come back as texts.)
  const std::string all = "b, s, i, l, r, d, n, w, day, ts, tz, tm, iv, x, y, u::text, m::text";
  for (const auto& [a, b] : {std::pair("t", "back"), std::pair("back", "t")}) {
    const std::string sql =
        "SELECT count(*) FROM (SELECT " + all + " FROM " + a + " EXCEPT ALL SELECT " + all + " FROM " + b + ") x";
    EXPECT_EQ(Query(sql.c_str()), std::vector<int64_t>{0});
  }
  EXPECT_EQ(Query("SELECT count(*) FROM back"), std::vector<int64_t>{1007});
}

TEST(ArrowArrays, TextsThatAreTooLongForOne) {
  using tessera::SqlType;
  using tessera::Value;
  const std::vector<tessera::vm::ResultColumn> columns = {{"n", SqlType::Of(tessera::TypeId::kBigint)},
                                                          {"s", SqlType::Text()}};
  const auto batch = [&] {
    tessera::RowBatch out;
    for (const auto& column : columns) out.columns.emplace_back().type = column.type;
    for (int i = 0; i < 9; ++i) {
      out.columns[0].Append(Value::Int(columns[0].type, i));
      out.columns[1].Append(i % 4 == 3 ? Value::Null(SqlType::Text())
                                       : Value::Text(std::string(10, static_cast<char>('a' + i))));
      ++out.rows;
    }
    return out;
  };
  std::vector<ArrowArray> arrays;
  ASSERT_TRUE(tessera::ExportRows(batch(), columns, &arrays, 25).ok());
  EXPECT_GT(arrays.size(), 3u);
  int64_t row = 0;
  for (ArrowArray& array : arrays) {
    const ArrowArray& texts = *array.children[1];
    const auto* const offsets = static_cast<const int32_t*>(texts.buffers[1]);
    EXPECT_LE(offsets[array.length], 25);
    for (int64_t i = 0; i < array.length; ++i, ++row) {
      EXPECT_EQ(static_cast<const int64_t*>(array.children[0]->buffers[1])[i], row);
      const auto* const valid = static_cast<const uint8_t*>(texts.buffers[0]);
      const bool is_null = valid != nullptr && (valid[i / 8] >> (i % 8) & 1) == 0;
      EXPECT_EQ(is_null, row % 4 == 3);
      EXPECT_EQ(offsets[i + 1] - offsets[i], is_null ? 0 : 10);
      if (is_null) continue;
      EXPECT_EQ(static_cast<const char*>(texts.buffers[2])[offsets[i]], 'a' + row);
    }
    array.release(&array);
  }
  EXPECT_EQ(row, 9);
  arrays.clear();
  EXPECT_EQ(tessera::ExportRows(batch(), columns, &arrays, 5).kind(), tessera::ErrorKind::kLimitExceeded);
  for (ArrowArray& array : arrays) array.release(&array);
}

TEST_F(CInterface, ParametersFromAStream) {
  EXPECT_TRUE(Query("CREATE TABLE t (a BIGINT PRIMARY KEY)").empty());
  for (const char* values :
       {"SELECT n::bigint FROM generate_series(1, 10) s (n)", "VALUES (11::bigint), (1::bigint)"}) {
    ArrowArrayStream rows;
    ASSERT_EQ(tessera_query(connection_, values, &rows, nullptr, &error_), TESSERA_OK);
    tessera_statement* const statement = Prepare("INSERT INTO t VALUES ($1)");
    ASSERT_EQ(tessera_bind_stream(statement, &rows, &error_), TESSERA_OK);
    int64_t count = 0;
    const bool first = *values == 'S';
    ASSERT_EQ(tessera_execute(statement, nullptr, &count, &error_), first ? TESSERA_OK : TESSERA_ERROR);
    if (first) {
      EXPECT_EQ(count, 10);
    } else {
      EXPECT_STREQ(error_.sqlstate, "23505");
    }
    tessera_finalize(statement);
  }
  // All rows of a stream, or none.
  EXPECT_EQ(tessera_in_transaction(connection_), 0);
  EXPECT_EQ(Query("SELECT count(*) FROM t"), std::vector<int64_t>{10});
}

TEST_F(CInterface, CancelFromAnotherThread) {
  std::atomic<bool> told{false};
  tessera_set_progress(
      connection_, [](void* data, const char*, uint64_t, uint64_t) { *static_cast<std::atomic<bool>*>(data) = true; },
      &told);
  EXPECT_TRUE(Query("CREATE TABLE t AS SELECT n FROM generate_series(1, 100000) s (n)").empty());
  told = false;
  std::thread other([&] {
    while (!told) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Error error;
    EXPECT_EQ(tessera_query(connection_, "SELECT 1", nullptr, nullptr, &error), TESSERA_ERROR);
    EXPECT_STREQ(error.sqlstate, "55000");
    tessera_cancel(connection_);
  });
  EXPECT_EQ(
      tessera_query(connection_, "SELECT count(*) FROM t a, t b, t c WHERE a.n % 7 < b.n % 9 AND b.n % 5 < c.n % 3",
                    nullptr, nullptr, &error_),
      TESSERA_ERROR);
  other.join();
  EXPECT_STREQ(error_.sqlstate, "57014");
  tessera_set_progress(connection_, nullptr, nullptr);
  EXPECT_EQ(Query("SELECT count(*) FROM t"), std::vector<int64_t>{100000});
}

}  // namespace
