// Rows by key between ranks: each rank gets what the others have for it, in their order, however it is cut and by however
// many threads it is packed.

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "mpi/messenger.h"
#include "mpi/mpi_exchange.h"
#include "tests/thread_ranks.h"
#include "vm/row_set.h"

namespace tessera {
namespace {

constexpr int kRanks = 3;

std::vector<SqlType> Types() { return {SqlType::Of(TypeId::kBigint), SqlType::Decimal(38, 2), SqlType::Text()}; }

/// A row as a line, which the receiver can make, too.
std::string Line(int from, int to, int piece, size_t row) {
  const std::string name = std::to_string(from) + ">" + std::to_string(to) + "." + std::to_string(piece);
  return row % 5 == 0 ? name + " NULL" : name + " " + std::to_string(row);
}

/// How many rows a piece has: of some there are none, and for some ranks there is none with rows.
size_t RowsOf(int round, int from, int to, int piece) {
  if ((round + from + to) % 4 == 0 || (piece + from) % 3 == 0) return 0;
  return static_cast<size_t>(1 + (round * 7 + from * 5 + to * 3 + piece * 11) % 200);
}

vm::RowSet Piece(int round, int from, int to, int piece, vm::StringPool* strings) {
  vm::RowSet rows = vm::MakeRowSet(Types());
  rows.rows = RowsOf(round, from, to, piece);
  for (size_t r = 0; r < rows.rows; ++r) {
    rows.columns[0].low.push_back(piece * 1000 + static_cast<int64_t>(r));
    rows.columns[1].low.push_back(-static_cast<int64_t>(r) - 1);
    rows.columns[1].high.push_back(-1 - from);
    rows.columns[2].low.push_back(r % 5 == 0 ? 0 : strings->Intern(Line(from, to, piece, r)));
    rows.columns[2].null.push_back(r % 5 == 0);
  }
  return rows;
}

/// What is wrong with what came from a rank.
std::string Wrong(int round, int from, int to, int pieces, const vm::RowPieces& came, const vm::StringPool& strings) {
  std::vector<std::string> expected, found;
  for (int p = 0; p < pieces; ++p) {
    for (size_t r = 0; r < RowsOf(round, from, to, p); ++r) {
      expected.push_back(std::to_string(p * 1000 + static_cast<int>(r)) + " " + std::to_string(-1 - from) + " " +
                         (r % 5 == 0 ? "NULL" : Line(from, to, p, r)));
    }
  }
  for (const vm::RowSet& rows : came) {
    for (size_t r = 0; r < rows.rows; ++r) {
      found.push_back(std::to_string(rows.columns[0].low[r]) + " " + std::to_string(rows.columns[1].high[r]) + " " +
                      (rows.columns[2].null[r] != 0 ? "NULL" : std::string(strings.Get(rows.columns[2].low[r]))));
    }
  }
  if (found == expected) return "";
  return "round " + std::to_string(round) + ", " + std::to_string(from) + " to " + std::to_string(to) + ": " +
         std::to_string(found.size()) + " rows in place of " + std::to_string(expected.size()) + ", or others";
}

/// What is wrong with several exchanges behind each other, of up to `pieces` pieces for each rank.
std::string Exchange(int rank, Transport* transport, int pieces, int threads) {
  Messenger messenger(transport);
  MpiExchange exchange(&messenger);
  exchange.Begin(1, {}, nullptr);
  ThreadPool pool(threads);
  exchange.UsePool(&pool);
  vm::StringPool strings;
  std::string wrong;
  for (int round = 0; round < 12; ++round) {
    const int own_pieces = round % 3 == rank ? 1 : pieces;  // some have little to send, and get much
    std::vector<vm::RowPieces> mine(kRanks);
    for (int to = 0; to < kRanks; ++to) {
      for (int p = 0; p < own_pieces; ++p) mine[static_cast<size_t>(to)].push_back(Piece(round, rank, to, p, &strings));
    }
    Result<std::vector<vm::RowPieces>> all = exchange.AllToAll(std::move(mine), Types(), &strings);
    if (!all.ok()) return all.status().message();
    for (int from = 0; from < kRanks; ++from)
      wrong += Wrong(round, from, rank, round % 3 == from ? 1 : pieces, (*all)[static_cast<size_t>(from)], strings);
  }
  exchange.End();
  return wrong;
}

void ExchangeOnAll(int pieces, int threads) {
  test::ThreadRanks ranks(kRanks, {}, [](int) { abort(); });
  std::vector<std::string> wrong(kRanks);
  std::vector<std::thread> others;
  for (int r = 0; r < kRanks; ++r) {
    others.emplace_back([&, r] {
      const std::unique_ptr<Transport> transport = ranks.Open(r);
      wrong[static_cast<size_t>(r)] = Exchange(r, transport.get(), pieces, threads);
    });
  }
  for (std::thread& t : others) t.join();
  for (const std::string& w : wrong) EXPECT_EQ(w, "") << pieces << " pieces, " << threads << " threads";
}

TEST(RowTraffic, BringsEachRankItsRowsInOrder) {
  for (const int pieces : {1, 2, 40}) {
    for (const int threads : {1, 2, 4}) ExchangeOnAll(pieces, threads);
  }
}

TEST(RowTraffic, RefusesRowsOfOtherTypes) {
  test::ThreadRanks ranks(2, {}, [](int) { abort(); });
  std::vector<std::thread> others;
  std::vector<Status> statuses(2);
  for (int r = 0; r < 2; ++r) {
    others.emplace_back([&, r] {
      const std::unique_ptr<Transport> transport = ranks.Open(r);
      Messenger messenger(transport.get());
      MpiExchange exchange(&messenger);
      exchange.Begin(1, {}, nullptr);
      vm::StringPool strings;
      const std::vector<SqlType> types = {r == 0 ? SqlType::Of(TypeId::kBigint) : SqlType::Text()};
      std::vector<vm::RowPieces> mine(2);
      statuses[static_cast<size_t>(r)] = exchange.AllToAll(std::move(mine), types, &strings).status();
    });
  }
  for (std::thread& t : others) t.join();
  for (const Status& s : statuses) EXPECT_EQ(s.code(), ErrorCode::kCorrupt) << s.message();
}

}  // namespace
}  // namespace tessera
