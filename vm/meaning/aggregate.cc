#include "vm/meaning/aggregate.h"

#include "vm/meaning/meaning.h"

namespace tessera::vm {

std::span<const AccumulatorSpec> ColumnClasses(Opcode aggregate) {
  std::span<const AccumulatorSpec> classes;
  if (aggregate >= Opcode::kCount) return classes;
  static constexpr AccumulatorSpec kText[] = {AccumulatorSpec::T};
  if (Info(aggregate).role == Role::Count) classes = StateColumns<int64_t>::kClasses;
  if (Info(aggregate).shape == Shape::FoldText) classes = kText;
  WithFold(aggregate, [&]<class M>() { classes = StateColumns<typename M::State>::kClasses; });
  return classes;
}

SqlType WordType(AccumulatorSpec word) {
  switch (word) {
    case AccumulatorSpec::F:
      return SqlType::Of(TypeId::kDouble);
    case AccumulatorSpec::W:
      return SqlType::Decimal(38, 0);
    default:
      return SqlType::Of(TypeId::kBigint);
  }
}

std::vector<size_t> AggregateColumns(const Section& section) {
  std::vector<size_t> first = {static_cast<size_t>(section.keys)};
  for (const AggregateSpec& a : section.aggregates) first.push_back(first.back() + ColumnClasses(a.op).size());
  return first;
}

}  // namespace tessera::vm
