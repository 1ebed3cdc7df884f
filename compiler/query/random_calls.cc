#include "compiler/query/random_calls.h"

#include <bit>
#include <random>
#include <set>
#include <utility>

#include "compiler/query/dependencies.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/query_walk.h"

namespace tessera {
namespace {

/// A site with this bit has its seed; another tells the call from others of the statement.
constexpr uint64_t kSeeded = uint64_t{1} << 63;

/// The mixing function of SplitMix64 (see RandomF in vm/meaning/meaning.h).
uint64_t Mix(uint64_t bits) {
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EB;
  return bits ^ bits >> 31;
}

ExprPtr MakeCall(uint64_t site, int position, int shift) {
  const SqlType bigint = SqlType::Of(TypeId::kBigint);
  ExprPtr e = MakeFunction(Function::kRandom, SqlType::Of(TypeId::kDouble), position,
                           ExprList(MakeConstant(Value::Int(bigint, static_cast<int64_t>(site)), position),
                                    MakeConstant(Value::Int(bigint, shift), position)));
  e->nullable = false;
  return e;
}

class CallSeeder {
 public:
  explicit CallSeeder(RandomState* state) : state_(*state) {}

  void Seed(Query* query) {
    Walk(query, [&](Expr& e) {
      if (!IsFunction(e, Function::kSetSeed)) return;
      NoteMoment();
      state_ = {SeedOf(e.args[0]->constant.f64), 0};
    });
    bool used = false;
    const uint64_t of_statement = Mix(state_.seed + 0x9E3779B97F4A7C15 * (state_.statements + 1));
    Walk(query, [&](Expr& e) {
      if (!IsFunction(e, Function::kRandom)) return;
      int64_t& site = e.args[0]->constant.i64;
      if (site < 0) return;
      used = true;
      site = static_cast<int64_t>(Mix(of_statement + static_cast<uint64_t>(site)) | kSeeded);
    });
    if (!used) return;
    NoteMoment();
    ++state_.statements;
  }

 private:
  template <class F>
  void Walk(Query* query, F f) {
    done_.clear();
    WalkBlock(query, f);
  }
  template <class F>
  void WalkBlock(Query* query, F f) {
    if (!done_.insert(query).second) return;
    ForEachRoot(*query, [&](ExprPtr& e) { WalkExpr(e.get(), f); });
    for (const Relation& r : query->relations) {
      if (r.query != nullptr) WalkBlock(r.query.get(), f);
    }
    for (const auto& more : query->union_all) WalkBlock(more.get(), f);
  }
  template <class F>
  void WalkExpr(Expr* e, F f) {
    f(*e);
    for (const ExprPtr& a : e->args) WalkExpr(a.get(), f);
  }

  RandomState& state_;
  std::set<const Query*> done_;  ///< relations may share a block
};

}  // namespace

uint64_t SeedOf(double x) { return Mix(std::bit_cast<uint64_t>(x + 0.0) + 0x9E3779B97F4A7C15); }

ExprPtr MakeRandom(uint64_t site, int position, int shift) { return MakeCall(site & ~kSeeded, position, shift); }
ExprPtr MakeRandomUuid(int position) {
  NoteMoment();
  std::random_device device;
  const auto seed = [&] {
    const uint64_t high = device();
    return MakeConstant(Value::Int(SqlType::Of(TypeId::kBigint), static_cast<int64_t>(high << 32 | device())),
                        position);
  };
  ExprPtr e = MakeFunction(Function::kRandomUuid, SqlType::Of(TypeId::kUuid), position, ExprList(seed(), seed()));
  e->nullable = false;
  return e;
}
ExprPtr MakeRepeatable(uint64_t seed, int position, int shift) { return MakeCall(seed | kSeeded, position, shift); }

void SeedCalls(Query* query, RandomState* state) { CallSeeder(state).Seed(query); }

}  // namespace tessera
