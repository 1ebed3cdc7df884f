#include "compiler/bind/type_binder.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/bind/relation_name.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/type_rules.h"
#include "tablet/catalog/schema_check.h"

namespace tessera {

Status BindCreateType(const ParseNode& create, int position, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kCreateType;
  const ParseNode* names = create.Get(Field::k_typeName);
  const bool has_schema = names->size() == 2 && IsDefaultSchema(names->first()->Text(Field::k_sval));
  if (names->size() > 1 && !has_schema)
    return Unsupported("a type in another schema than public is not supported", position, "Leave out the schema.");
  out->definition.type.name = (has_schema ? names->first()->next() : names->first())->Text(Field::k_sval);
  if (const ParseNode* labels = create.Get(Field::k_vals)) {
    for (const ParseNode& label : *labels) out->definition.type.labels.emplace_back(label.Text(Field::k_sval));
  }
  const auto same = [&](const EnumType& t) { return t.name == out->definition.type.name; };
  if (FindTypeName(out->definition.type.name) || std::any_of(snapshot.types.begin(), snapshot.types.end(), same))
    return SqlError(ErrorKind::kDuplicateObject, "type \"" + out->definition.type.name + "\" already exists", position);
  return CheckType(out->definition.type).At(position);
}

Status BindDropType(const ParseNode& drop, int position, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kDropType;
  const ParseNode* objects = drop.Get(Field::k_objects);
  if (objects->size() > 1) return Unsupported("DROP TYPE of several types is not supported", position);
  const ParseNode* names = objects->first()->Get(Field::k_names);
  std::string_view name;
  for (const ParseNode& n : *names) name = n.Text(Field::k_sval);
  out->definition.type.name = name;
  out->definition.if_exists = drop.Get(Field::k_missing_ok) != nullptr;
  if (drop.Text(Field::k_behavior) == "DROP_CASCADE")
    return Unsupported("DROP TYPE ... CASCADE is not supported", position,
                       "Make the tables that have it anew without it first: CREATE OR REPLACE TABLE t AS SELECT ...");
  std::vector<std::string_view> known;
  for (const EnumType& type : snapshot.types) known.push_back(type.name);
  if (out->definition.if_exists || std::find(known.begin(), known.end(), name) != known.end()) return {};
  if (FindTypeName(name))
    return SqlError(ErrorKind::kDependentObjects, "cannot drop type " + std::string(name) + ": it is built in",
                    position);
  const std::string nearest = NearestName(name, known);
  return SqlError(ErrorKind::kUndefinedObject, "type \"" + std::string(name) + "\" does not exist", position,
                  nearest.empty() ? "" : "Perhaps you meant type \"" + nearest + "\".");
}

}  // namespace tessera
