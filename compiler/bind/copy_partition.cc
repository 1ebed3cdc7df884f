#include "compiler/bind/copy_partition.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lower_case.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/parse/statement_option.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/query_copy.h"

namespace tessera {
namespace {

/// PARTITION_BY (a, b) or PARTITION_BY a.
std::vector<std::string> NamesOf(const ParseNode& option) {
  std::vector<std::string> names;
  const ParseNode* const argument = option.Get(Field::k_arg);
  if (argument == nullptr) return names;
  const std::string text = OptionText(option);
  if (!text.empty()) return {text};
  const ParseNode* const items = argument->Get(Field::k_items);
  for (const ParseNode* item = items != nullptr ? items->first() : nullptr; item != nullptr; item = item->next())
    names.emplace_back(item->Text(Field::k_sval));
  return names;
}

/// The rows of `query` as those of a derived table, so that they can be sorted whatever it does itself.
std::unique_ptr<Query> Around(std::unique_ptr<Query> query) {
  const int columns = query->visible;
  auto outer = std::make_unique<Query>();
  outer->relations.push_back(DerivedTable(std::shared_ptr<Query>(std::move(query))));
  BindContext context;
  context.relations = &outer->relations;
  ExpressionBinder binder(&context, nullptr, Clause::kSelect);
  for (int c = 0; c < columns; ++c)
    outer->outputs.push_back({binder.Column(0, c, -1), outer->relations[0].column_names[static_cast<size_t>(c)]});
  outer->visible = columns;
  return outer;
}

}  // namespace

Status BindPartitionBy(const ParseNode* options, Statement* out) {
  const ParseNode* found = nullptr;
  for (const ParseNode* option = options != nullptr ? options->first() : nullptr; option != nullptr;
       option = option->next()) {
    if (LowerCase(option->Text(Field::k_defname)) == "partition_by") found = option;
  }
  if (found == nullptr) return {};
  const int position = found->location();
  if (out->copy.file.empty())
    return SqlError("COPY with PARTITION_BY writes files, and not to the standard output", position,
                    "Write COPY ... TO 'directory' (PARTITION_BY (a, b)).");
  std::vector<std::string_view> outputs;
  for (int i = 0; i < out->query->visible; ++i) outputs.push_back(out->query->outputs[static_cast<size_t>(i)].name);
  for (const std::string& name : NamesOf(*found)) {
    const auto at = std::ranges::find(outputs, name);
    if (at == outputs.end()) {
      const std::string nearest = NearestName(name, outputs);
      return SqlError(ErrorKind::kUndefinedColumn, "COPY has no column \"" + name + "\" to partition by", position,
                      nearest.empty() ? "" : "Perhaps you meant " + nearest + ".");
    }
    const auto output = static_cast<int>(at - outputs.begin());
    if (std::ranges::count(out->copy.partition_by, output) > 0)
      return SqlError(ErrorKind::kDuplicateColumn, "column \"" + name + "\" is twice in PARTITION_BY", position);
    out->copy.partition_by.push_back(output);
  }
  if (out->copy.partition_by.empty())
    return SqlError("PARTITION_BY needs columns", position, "Write PARTITION_BY (a, b).");
  if (out->copy.partition_by.size() == outputs.size())
    return SqlError("PARTITION_BY leaves no column for the files", position, "Leave out one of its columns.");
  out->query = Around(std::move(out->query));
  for (const int output : out->copy.partition_by) out->query->order_by.push_back({output});
  return {};
}

}  // namespace tessera
