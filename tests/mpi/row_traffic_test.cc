// Many rows between ranks: each rank gets what the others have for it, or for all, in their order, however it is cut and by
// however many threads it is packed.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "mpi/messenger.h"
#include "mpi/mpi_exchange.h"
#include "mpi/wire.h"
#include "tests/mpi/thread_ranks.h"
#include "vm/rows/row_set.h"

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

/// f(rank, its transport) on `count` ranks, each a thread.
void OnRanks(int count, const std::function<void(int, Transport*)>& f) {
  test::ThreadRanks ranks(count, {}, [](int) { abort(); });
  std::vector<std::thread> threads;
  for (int r = 0; r < count; ++r) {
    threads.emplace_back([&, r] {
      const std::unique_ptr<Transport> transport = ranks.Open(r);
      f(r, transport.get());
    });
  }
  for (std::thread& t : threads) t.join();
}

/// f(rank, its exchange, its strings) on `count` ranks of this many threads; what that says is wrong on each of them.
template <class F>
std::vector<std::string> OnExchanges(int count, int threads, F f) {
  std::vector<std::string> wrong(static_cast<size_t>(count));
  OnRanks(count, [&](int rank, Transport* transport) {
    Messenger messenger(transport);
    MpiExchange exchange(&messenger);
    exchange.Begin(1, {}, nullptr);
    ThreadPool pool(threads);
    exchange.UsePool(&pool);
    vm::StringPool strings;
    wrong[static_cast<size_t>(rank)] = f(rank, &exchange, &strings);
    exchange.End();
  });
  return wrong;
}

/// What is wrong with several exchanges one after the other, of up to `pieces` pieces for each rank.
std::string Exchange(int rank, int pieces, MpiExchange* exchange, vm::StringPool* strings) {
  std::string wrong;
  for (int round = 0; round < 12; ++round) {
    const int own_pieces = round % 3 == rank ? 1 : pieces;  // some have little to send, and get much
    std::vector<vm::RowPieces> mine(kRanks);
    for (int to = 0; to < kRanks; ++to) {
      for (int p = 0; p < own_pieces; ++p) mine[static_cast<size_t>(to)].push_back(Piece(round, rank, to, p, strings));
    }
    Result<std::vector<vm::RowPieces>> all = exchange->AllToAll(std::move(mine), Types(), strings);
    if (!all.ok()) return all.status().message();
    for (int from = 0; from < kRanks; ++from)
      wrong += Wrong(round, from, rank, round % 3 == from ? 1 : pieces, (*all)[static_cast<size_t>(from)], *strings);
  }
  return wrong;
}

TEST(RowTraffic, BringsEachRankItsRowsInOrder) {
  for (const int pieces : {1, 2, 40}) {
    for (const int threads : {1, 2, 4}) {
      const std::vector<std::string> wrong =
          OnExchanges(kRanks, threads, [&](int rank, MpiExchange* exchange, vm::StringPool* strings) {
            return Exchange(rank, pieces, exchange, strings);
          });
      for (const std::string& w : wrong) EXPECT_EQ(w, "") << pieces << " pieces, " << threads << " threads";
    }
  }
}

std::vector<SqlType> TypesForAll() { return {SqlType::Of(TypeId::kBigint), SqlType::Text(), SqlType::Decimal(38, 2)}; }

/// A rank's rows of a round for all: many of some ranks, few or none of others, in units of any length.
vm::Shipment ForAll(int round, int from, vm::StringPool* strings) {
  constexpr size_t kRows[] = {0, 9, 65536, 200001, 65535};
  vm::Shipment shipment;
  shipment.rows = vm::MakeRowSet(TypesForAll());
  const size_t rows = shipment.rows.rows = kRows[static_cast<size_t>(round + 2 * from) % 5];
  const int64_t text = strings->Intern("of " + std::to_string(from));
  for (size_t r = 0; r < rows; ++r) {
    shipment.rows.columns[0].low.push_back(static_cast<int64_t>(r) * (from + 1));
    shipment.rows.columns[1].low.push_back(text);
    shipment.rows.columns[2].low.push_back(static_cast<int64_t>(r));
    shipment.rows.columns[2].high.push_back(-from);
    if (round % 2 == 0) shipment.rows.columns[2].null.push_back(r % 3 == 0);
  }
  size_t left = round == 3 ? 0 : rows;  // (there may be none)
  for (uint64_t unit = static_cast<uint64_t>(round); left > 0; unit += 3) {
    const size_t of_unit = std::min<size_t>(left, unit % 2 == 0 ? 1000 : 70000);
    shipment.units.push_back({unit, of_unit});
    left -= of_unit;
  }
  shipment.through = static_cast<uint64_t>(1000 + round);
  shipment.last = round % 2 == 0;
  return shipment;
}

std::string WrongForAll(int round, int from, const vm::Shipment& came, const vm::StringPool& strings) {
  vm::StringPool own;
  const vm::Shipment expected = ForAll(round, from, &own);
  const auto units = [](const vm::Shipment& s) {
    std::vector<uint64_t> all{s.through, s.last};
    for (const vm::UnitRows& u : s.units) all.insert(all.end(), {u.unit, u.rows});
    return all;
  };
  bool right = came.rows.rows == expected.rows.rows && units(came) == units(expected) &&
               came.rows.columns[0].low == expected.rows.columns[0].low &&
               came.rows.columns[2].high == expected.rows.columns[2].high &&
               came.rows.columns[2].null == expected.rows.columns[2].null;
  for (const int64_t text : came.rows.columns[1].low) right &= strings.Get(text) == "of " + std::to_string(from);
  return right ? "" : "round " + std::to_string(round) + ", of " + std::to_string(from) + "; ";
}

TEST(RowTraffic, GivesAllRanksTheSameRowsAndUnits) {
  for (const int threads : {1, 3}) {
    const std::vector<std::string> wrong =
        OnExchanges(kRanks, threads, [](int rank, MpiExchange* exchange, vm::StringPool* strings) {
          std::string wrong_here;
          for (int round = 0; round < 5; ++round) {
            Result<std::vector<vm::Shipment>> all =
                exchange->AllGather(ForAll(round, rank, strings), TypesForAll(), strings);
            for (int from = 0; all.ok() && from < kRanks; ++from)
              wrong_here += WrongForAll(round, from, (*all)[static_cast<size_t>(from)], *strings);
            if (!all.ok()) wrong_here += all.status().message();
          }
          return wrong_here;
        });
    for (const std::string& w : wrong) EXPECT_EQ(w, "") << threads << " threads";
  }
}

/// A transport on which messages of the rank before are seen late, and others now and then.
class LateTransport final : public Transport {
 public:
  explicit LateTransport(Transport* of) : of_(*of), random_(static_cast<uint32_t>(of->rank()) + 1) {}
  int rank() const override { return of_.rank(); }
  int ranks() const override { return of_.ranks(); }
  int local_rank() const override { return of_.local_rank(); }
  int local_ranks() const override { return of_.local_ranks(); }
  bool any_thread() const override { return of_.any_thread(); }
  Request Send(int to, int tag, const void* data, size_t bytes, bool synchronous) override {
    return of_.Send(to, tag, data, bytes, synchronous);
  }
  Request Receive(int from, int tag, void* data, size_t bytes) override { return of_.Receive(from, tag, data, bytes); }
  bool Probe(int from, int tag, size_t* bytes, int* source) override {
    if ((from + 1) % ranks() == rank() && MillisecondsSince(start_) < 50) return false;
    return random_() % 3 != 0 && of_.Probe(from, tag, bytes, source);
  }
  Request Broadcast(int root, void* data, size_t bytes) override { return of_.Broadcast(root, data, bytes); }
  Request Minimum(int64_t* value) override { return of_.Minimum(value); }
  Request Sum(int64_t* value) override { return of_.Sum(value); }
  Request AllGather(const void* mine, size_t bytes, void* all) override { return of_.AllGather(mine, bytes, all); }
  Request AllGather(const void* mine, const int* sizes, const int* starts, void* all) override {
    return of_.AllGather(mine, sizes, starts, all);
  }
  bool Done(Request* request, size_t* received) override { return of_.Done(request, received); }
  void Abort(int status) override { of_.Abort(status); }

 private:
  Transport& of_;
  const Clock::time_point start_ = Clock::now();
  std::minstd_rand random_;
};

/// Three messages for each rank, of three pieces and, but for three ranks, of one and two.
class LongMessages final : public MessageTraffic {
 public:
  explicit LongMessages(const Transport& transport) : rank_(transport.rank()), ranks_(transport.ranks()) {}
  std::optional<OutgoingMessage> Next() override {
    if (IsSent()) return std::nullopt;
    const int number = sent_ / (ranks_ - 1), to = (rank_ + 1 + sent_ % (ranks_ - 1)) % ranks_;
    ++sent_;
    WireWriter out(true);
    out.Text(Message(rank_, to, number));
    return OutgoingMessage{to, std::make_shared<const std::string>(out.Take())};
  }
  bool IsSent() override { return sent_ == kEach * (ranks_ - 1); }
  std::optional<bool> Came(int from, Bytes message) override {
    const int number = came_[from]++;
    EXPECT_GE(message.size, sizeof(uint64_t));
    EXPECT_TRUE(message.view().substr(sizeof(uint64_t)) == Message(from, rank_, number)) << from << " to " << rank_;
    return number + 1 < kEach;
  }

 private:
  static constexpr int kEach = 3;

  std::string Message(int from, int to, int number) const {
    constexpr size_t kSizes[] = {6 << 20, 5 << 20, 30 << 10, 1 << 20, 0};
    const size_t bytes = ranks_ == 3 ? kSizes[0] : kSizes[(from * 3 + to + number) % 5];
    return std::string(bytes, static_cast<char>('a' + 5 * from + number));
  }

  const int rank_, ranks_;
  int sent_ = 0;
  std::map<int, int> came_;
};

/// Each rank takes one message at a time, as they come, and each has few pieces under way.
TEST(RowTraffic, LongMessagesDoNotWaitForEachOtherInACircle) {
  for (const int count : {2, 3, 4, 5}) {
    OnRanks(count, [](int, Transport* transport) {
      LateTransport late(transport);
      Messenger messenger(&late);
      for (int round = 0; round < 3; ++round) {
        LongMessages traffic(late);
        messenger.ExchangeMessages(kTagRows, &traffic);
        EXPECT_TRUE(traffic.IsSent());
      }
    });
  }
}

TEST(RowTraffic, RefusesRowsOfOtherTypes) {
  std::vector<Status> statuses(2);
  (void)OnExchanges(2, 1, [&](int rank, MpiExchange* exchange, vm::StringPool* strings) {
    const std::vector<SqlType> types = {rank == 0 ? SqlType::Of(TypeId::kBigint) : SqlType::Text()};
    statuses[static_cast<size_t>(rank)] = exchange->AllToAll(std::vector<vm::RowPieces>(2), types, strings).status();
    return std::string();
  });
  for (const Status& s : statuses) EXPECT_EQ(s.code(), ErrorCode::kCorrupt) << s.message();
}

}  // namespace
}  // namespace tessera
