#include "compiler/query/dependencies.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tessera {
namespace {

thread_local Dependencies* noted = nullptr;

}  // namespace

bool Dependencies::HoldIn(const Snapshot& snapshot) const {
  const auto means_the_same = [&](const Name& name) { return snapshot.Resolve(name.written) == name.qualified; };
  if (!std::ranges::all_of(names, means_the_same)) return false;
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

const std::vector<Dependencies::Table>* NotedTables() { return noted != nullptr ? &noted->tables : nullptr; }

const std::vector<Dependencies::Name>* NotedNames() { return noted != nullptr ? &noted->names : nullptr; }

void NoteName(std::string_view written, std::string_view qualified, int position) {
  if (noted == nullptr) return;
  Dependencies::Name name{std::string(written), std::string(qualified), position};
  if (std::ranges::count(noted->names, name) == 0) noted->names.push_back(std::move(name));
}

void NoteMoment() {
  if (noted != nullptr) noted->moment = true;
}

}  // namespace tessera
