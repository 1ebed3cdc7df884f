#include "compiler/query/dependencies.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tessera {
namespace {

thread_local Dependencies* noted = nullptr;

}  // namespace

bool Dependencies::HoldIn(const Snapshot& snapshot) const {
  return std::ranges::all_of(tables, [&](const Table& t) {
    const std::shared_ptr<const TableInfo> now = snapshot.Find(t.name);
    return now != nullptr && now->number.value() == t.number;
  });
}

DependencyScope::DependencyScope(Dependencies* out) : outer_(std::exchange(noted, out)) {}
DependencyScope::~DependencyScope() { noted = outer_; }

void NoteTable(const TableInfo& table) {
  if (noted == nullptr) return;
  const uint64_t number = table.number.value();
  if (std::ranges::any_of(noted->tables, [&](const Dependencies::Table& t) { return t.number == number; })) return;
  if (noted->tables.empty()) noted->tables.reserve(8);  // one block for most queries
  noted->tables.push_back({table.schema.name, number});
}

void NoteMoment() {
  if (noted != nullptr) noted->moment = true;
}

}  // namespace tessera
