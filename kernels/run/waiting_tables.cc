#include "kernels/run/waiting_tables.h"

#include <algorithm>
#include <utility>

#include "base/exception_status.h"
#include "vm/rows/row_set.h"

namespace tessera::kernels {
tessera::Result<bool> WaitingTables::Exchange(const vm::SectionContext& context, int join, bool can, bool is_inner,
                                              Status mine, DeviceJoins* joins, KeptResults* results, RankLinks* links,
                                              RankTexts* texts) {
  const vm::Program& program = *context.program;
  const vm::Section& builder = BuilderOf(program, join);
  const std::vector<SqlType>& columns = program.sections[static_cast<size_t>(context.section)].columns;
  const auto waiting = tables_.find(join);
  if (mine.ok() && waiting == tables_.end())
    mine = {ErrorCode::kInternal, "a join table that is to be exchanged was not built"};
  JoinSide build{&builder.columns, nullptr, {}}, probe{&columns, nullptr, {}};
  if (mine.ok()) {
    WaitingTable& table = waiting->second;
    can = can && table.on_host.empty();
    build.rows = &table.rows;
    build.summaries = table.summaries;
  }
  if (results->Has(context.section)) {
    probe.rows = results->rows(context.section);
    probe.summaries = results->summaries(context.section);
  }
  JoinExchange exchange(&gpu_, links, texts, context, static_cast<size_t>(builder.keys),
                        {std::move(build), std::move(probe)});
  TESSERA_ASSIGN(const bool agreed, exchange.Agree(std::move(mine), can, is_inner));
  if (!agreed) return false;
  TESSERA_TRY(exchange.Move());
  // (No other rank waits for this one any more.)
  TESSERA_TRY(Caught([&] { return TakeOver(context, join, &exchange, joins, results); }));
  context.statistics->rows_exchanged += exchange.sent();
  context.statistics->heavy_keys += exchange.spread();
  context.statistics->device_plan += ", both sides of the join exchanged by " + links->name();
  return true;
}

Status WaitingTables::TakeOver(const vm::SectionContext& context, int join, JoinExchange* exchange, DeviceJoins* joins,
                               KeptResults* results) {
  const vm::Program& program = *context.program;
  const std::vector<SqlType>& columns = program.sections[static_cast<size_t>(context.section)].columns;
  DeviceRows rows;
  TESSERA_TRY(exchange->Unpack(JoinExchange::kBuild, &rows));
  TESSERA_TRY(LayOut(context, join, &rows, joins));
  CameRows& came = exchange->came(JoinExchange::kProbe);
  context.statistics->rows_out = came.packed.rows();
  results->Drop(context.section);
  if (came.packed.rows() == 0) return Status::Ok();
  if (!exchange->has_texts(JoinExchange::kProbe)) {
    results->KeepPacked(context.section, columns, std::move(came.summaries), came.packed, &came.memory);
    return Status::Ok();
  }
  DeviceRows probing;
  TESSERA_TRY(exchange->Unpack(JoinExchange::kProbe, &probing));
  return results->Keep(context.section, columns, &probing);
}

Status WaitingTables::LayOut(const vm::SectionContext& context, int join, DeviceRows* rows, DeviceJoins* joins) {
  const vm::Program& program = *context.program;
  const WaitingTable& waiting = tables_.at(join);
  const size_t columns = BuilderOf(program, join).columns.size();
  std::vector<ColumnSummary> summaries(kMaxSummaries);
  const uint64_t bytes = summaries.size() * sizeof(ColumnSummary);
  RunBuffer found;
  TESSERA_TRY(found.Allocate(&gpu_, bytes));
  // (Pageable memory: these copies are done when the calls return.)
  CUDA_TRY(cudaMemcpyAsync(found.As<void>(), summaries.data(), bytes, cudaMemcpyHostToDevice, gpu_.stream));
  const RowsToSummarize all = ToSummarize(*rows, columns, found.As<ColumnSummary>());
  CUDA_TRY(StartSummarize(&all, 1, gpu_.stream));
  CUDA_TRY(cudaMemcpyAsync(summaries.data(), found.As<void>(), bytes, cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  // Of the rows that probe here as many find a row as of all that probe.
  const double share = static_cast<double>(rows->rows()) / static_cast<double>(std::max<uint64_t>(waiting.all_rows, 1));
  const auto source_rows = static_cast<uint64_t>(static_cast<double>(waiting.source_rows) * share);
  TableBatch batch;
  TESSERA_TRY(joins->LayOut(program, *context.traits, {join, rows, summaries.data(), source_rows, {}}, &batch));
  TESSERA_TRY(joins->FillTables(program, &batch, context.pool));
  joins->SetKeyRange(join, waiting.keys);
  tables_.erase(join);
  return Status::Ok();
}

tessera::Result<vm::RowSet> WaitingTables::Take(const vm::Program& program, int join, ThreadPool* pool) {
  const auto at = tables_.find(join);
  if (at == tables_.end()) return Status(ErrorCode::kInternal, "a join table that is to be exchanged was not built");
  WaitingTable table = std::move(at->second);
  tables_.erase(at);
  const std::vector<SqlType>& columns = BuilderOf(program, join).columns;
  if (table.on_host.empty()) return DownloadRows(&gpu_, columns, table.rows, table.rows.rows());
  vm::RowSet rows = vm::MakeRowSet(columns);
  TESSERA_TRY(vm::AppendAll(&rows, std::move(table.on_host), pool));
  return rows;
}

}  // namespace tessera::kernels
