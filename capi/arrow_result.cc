#include "capi/arrow_result.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <utility>

#include "base/exception_status.h"
#include "base/memory_budget.h"
#include "capi/arrow_array.h"
#include "capi/arrow_types.h"
#include "compiler/query/bound_query.h"
#include "shell/plan_tree_text.h"
#include "shell/statistics_text.h"

namespace tessera {
namespace {

/// The batches of a result: every stream over them has a share in them, and so has every array that one handed out.
struct Batches {
  ~Batches() {
    for (ArrowArray& batch : arrays) ReleaseArrow(&batch);
  }
  std::vector<vm::ResultColumn> columns;
  std::vector<ArrowArray> arrays;
};
using SharedBatches = std::shared_ptr<Batches>;

struct StreamOwner {
  SharedBatches batches;
  size_t next = 0;
};

StreamOwner* OwnerOf(ArrowArrayStream* stream) { return static_cast<StreamOwner*>(stream->private_data); }

/// Another array over the buffers of one of the batches.
struct ShareOwner {
  ~ShareOwner() {
    for (ArrowArray& child : children) ReleaseArrow(&child);
    ReleaseArrow(&dictionary);
  }
  SharedBatches batches;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
  ArrowArray dictionary = {};
};

void ReleaseShare(ArrowArray* array) {
  delete static_cast<ShareOwner*>(array->private_data);
  array->release = nullptr;
  FlushMemoryCount();  // of any thread
}

void Share(const SharedBatches& batches, const ArrowArray& of, ArrowArray* out) {
  auto owner = std::make_unique<ShareOwner>();
  owner->batches = batches;
  owner->children.resize(static_cast<size_t>(of.n_children));
  for (size_t i = 0; i < owner->children.size(); ++i) {
    Share(batches, *of.children[i], &owner->children[i]);
    owner->pointers.push_back(&owner->children[i]);
  }
  if (of.dictionary != nullptr) Share(batches, *of.dictionary, &owner->dictionary);
  *out = of;
  out->children = owner->pointers.empty() ? nullptr : owner->pointers.data();
  if (of.dictionary != nullptr) out->dictionary = &owner->dictionary;
  out->release = ReleaseShare;
  out->private_data = owner.release();
}

/// 0, or ENOMEM.
template <class F>
int Code(const F& f) {
  const Status status = Caught([&]() -> Status {
    f();
    return {};
  });
  return status.ok() ? 0 : ENOMEM;
}

int GetSchema(ArrowArrayStream* stream, ArrowSchema* out) {
  return Code([&] { ExportColumns(OwnerOf(stream)->batches->columns, out); });
}

int GetNext(ArrowArrayStream* stream, ArrowArray* out) {
  StreamOwner& owner = *OwnerOf(stream);
  *out = {};
  if (owner.next == owner.batches->arrays.size()) return 0;
  return Code([&] {
    Share(owner.batches, owner.batches->arrays[owner.next], out);
    ++owner.next;
  });
}

/// What a stream hands out is there already: only memory may be lacking.
const char* GetLastError(ArrowArrayStream*) { return "out of memory"; }

void ReleaseStream(ArrowArrayStream* stream) {
  delete OwnerOf(stream);
  stream->release = nullptr;
  FlushMemoryCount();
}

}  // namespace

namespace {

void ExportBatches(SharedBatches batches, ArrowArrayStream* out) {
  auto owner = std::make_unique<StreamOwner>();
  owner->batches = std::move(batches);
  *out = {GetSchema, GetNext, GetLastError, ReleaseStream, owner.release()};
}

}  // namespace

void ExportStream(std::vector<vm::ResultColumn> columns, std::vector<ArrowArray> batches, ArrowArrayStream* out) {
  auto shared = std::make_shared<Batches>();
  shared->columns = std::move(columns);
  shared->arrays = std::move(batches);
  ExportBatches(std::move(shared), out);
}

Status CopyStream(ArrowArrayStream* from, ArrowArrayStream* out) {
  if (from == nullptr || from->release != ReleaseStream)
    return {ErrorKind::kInvalidParameterValue, "only an open stream that Tessera made can be copied"};
  ExportBatches(OwnerOf(from)->batches, out);
  return {};
}

int64_t ChangedRows(std::string_view command_tag) {
  const size_t at = command_tag.find_last_of(' ');
  if (at == std::string_view::npos) return -1;
  int64_t rows = -1;
  const char* const end = command_tag.data() + command_tag.size();
  const auto [next, error] = std::from_chars(command_tag.data() + at + 1, end, rows);
  return error == std::errc() && next == end ? rows : -1;
}

ArrowResult::~ArrowResult() {
  for (ArrowArray& batch : batches_) ReleaseArrow(&batch);
}

Status ArrowResult::Begin(const std::vector<vm::ResultColumn>& columns) {
  columns_ = columns;
  return {};
}

Status ArrowResult::Rows(RowBatch&& batch) {
  rows_ += batch.rows;
  return batch.rows == 0 || !keeps_rows_ ? Status::Ok() : ExportRows(std::move(batch), columns_, &batches_);
}

Status ArrowResult::Done(const std::string& command_tag) {
  command_tag_ = command_tag;
  return {};
}

Status ArrowResult::Text(const std::string& text) {
  if (columns_.empty()) columns_ = {{text_column_, SqlType::Text()}};
  text_ += text;
  return {};
}

Status ArrowResult::Analyzed(const Analysis& analysis) { return Text("\n" + StatisticsText(analysis)); }

Status ArrowResult::Explained(const Explanation& explanation) {
  constexpr size_t kWidth = 120;
  // JSON is one value, and so is a page.
  if (!explanation.form->json && !explanation.form->html) return Text(PlanTreeText(explanation, kWidth));
  RowBatch batch;
  batch.rows = 1;
  batch.columns.emplace_back().type = SqlType::Text();
  batch.columns[0].Append(Value::Text(ExplanationText(explanation, kWidth)));
  columns_ = {{text_column_, SqlType::Text()}};
  return Rows(std::move(batch));
}

Status ArrowResult::AddLines() {
  if (text_.empty()) return {};
  RowBatch batch;
  ColumnVector& lines = batch.columns.emplace_back();
  lines.type = SqlType::Text();
  for (size_t at = 0; at < text_.size(); ++batch.rows) {
    const size_t end = std::min(text_.find('\n', at), text_.size());
    lines.Append(Value::Text(text_.substr(at, end - at)));
    at = end + 1;
  }
  text_.clear();
  return Rows(std::move(batch));
}

Status ArrowResult::MoveTo(ArrowArrayStream* out) {
  TESSERA_TRY(AddLines());
  ExportStream(std::exchange(columns_, {}), std::exchange(batches_, {}), out);
  return {};
}

}  // namespace tessera
