#include "capi/arrow_tree.h"

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/exception_status.h"
#include "base/status.h"
#include "capi/arrow_types.h"

namespace tessera {
namespace {

struct TypeOwner {
  ~TypeOwner() {
    for (ArrowSchema& child : children) ReleaseArrow(&child);
  }
  std::string format, name;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
};

struct TreeOwner {
  ~TreeOwner() {
    for (ArrowArray& child : children) ReleaseArrow(&child);
  }
  std::string validity, values, texts;
  std::array<const void*, 3> buffers = {};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
};

template <class Owner, class T>
void ReleaseOwner(T* owned) {
  delete static_cast<Owner*>(owned->private_data);
  owned->release = nullptr;
}

struct TreeStream {
  explicit TreeStream(ArrowTree from) : tree(std::move(from)) { tree.ExportArray(&array); }
  ~TreeStream() { ReleaseArrow(&array); }
  ArrowTree tree;
  ArrowArray array = {};
};

TreeStream* StreamOf(ArrowArrayStream* stream) { return static_cast<TreeStream*>(stream->private_data); }

}  // namespace

ArrowTree::ArrowTree(std::string format, std::string name, bool nullable, std::vector<ArrowTree> children)
    : format_(std::move(format)), name_(std::move(name)), nullable_(nullable), children_(std::move(children)) {
  if (format_ == "u" || format_ == "+l" || format_ == "+m") AddBytes<int32_t>(&values_, 0);
}

template <class T>
void ArrowTree::AddBytes(std::string* to, T value) {
  to->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

size_t ArrowTree::Width() const {
  return format_ == "l" ? 8 : format_ == "i" || format_ == "I" ? 4 : format_ == "s" ? 2 : 0;
}

void ArrowTree::Note(bool valid) {
  if (length_ % 8 == 0) validity_ += '\0';
  if (valid) validity_.back() = static_cast<char>(validity_.back() | 1 << (length_ % 8));
  if (!valid) ++nulls_;
  ++length_;
}

void ArrowTree::AppendNull() {
  if (format_ == "u") {
    AddBytes(&values_, static_cast<int32_t>(texts_.size()));
  } else if (format_ == "+l" || format_ == "+m") {
    AddBytes(&values_, static_cast<int32_t>(children_[0].length()));
  } else if (format_ == "b") {
    if (length_ % 8 == 0) values_ += '\0';
  } else if (format_ == "+s") {
    for (ArrowTree& field : children_) field.AppendNull();
  } else {
    values_.append(Width(), '\0');
  }
  Note(false);
}

void ArrowTree::AppendText(std::string_view text) {
  texts_ += text;
  AddBytes(&values_, static_cast<int32_t>(texts_.size()));
  Note(true);
}

void ArrowTree::AppendText(const std::optional<std::string>& text) {
  if (text) {
    AppendText(std::string_view(*text));
  } else {
    AppendNull();
  }
}

void ArrowTree::AppendNumber(int64_t number) {
  // (The lowest bytes come first.)
  values_.append(reinterpret_cast<const char*>(&number), Width());
  Note(true);
}

void ArrowTree::AppendBoolean(bool value) {
  if (length_ % 8 == 0) values_ += '\0';
  if (value) values_.back() = static_cast<char>(values_.back() | 1 << (length_ % 8));
  Note(true);
}

void ArrowTree::Close() {
  if (format_ != "+s") AddBytes(&values_, static_cast<int32_t>(children_[0].length()));
  Note(true);
}

void ArrowTree::CloseUnion(size_t child) {
  texts_ += static_cast<char>(child);
  AddBytes(&values_, static_cast<int32_t>(children_[child].length() - 1));
  ++length_;
}

void ArrowTree::ExportSchema(ArrowSchema* out) const {
  auto owner = std::make_unique<TypeOwner>();
  owner->format = format_;
  owner->name = name_;
  owner->children.resize(children_.size());
  for (size_t i = 0; i < children_.size(); ++i) {
    children_[i].ExportSchema(&owner->children[i]);
    owner->pointers.push_back(&owner->children[i]);
  }
  *out = {};
  out->format = owner->format.c_str();
  out->name = owner->name.c_str();
  out->flags = nullable_ ? ARROW_FLAG_NULLABLE : 0;
  out->n_children = static_cast<int64_t>(children_.size());
  out->children = owner->pointers.data();
  out->release = ReleaseOwner<TypeOwner, ArrowSchema>;
  out->private_data = owner.release();
}

void ArrowTree::ExportArray(ArrowArray* out) {
  auto owner = std::make_unique<TreeOwner>();
  owner->validity = std::move(validity_);
  owner->values = std::move(values_);
  owner->texts = std::move(texts_);
  owner->children.resize(children_.size());
  for (size_t i = 0; i < children_.size(); ++i) {
    children_[i].ExportArray(&owner->children[i]);
    owner->pointers.push_back(&owner->children[i]);
  }
  *out = {};
  if (IsUnion()) {
    owner->buffers = {owner->texts.data(), owner->values.data(), nullptr};
    out->n_buffers = 2;
  } else {
    owner->buffers = {nulls_ > 0 ? owner->validity.data() : nullptr, owner->values.data(), owner->texts.data()};
    out->n_buffers = format_ == "+s" ? 1 : format_ == "u" ? 3 : 2;
  }
  out->length = length_;
  out->null_count = nulls_;
  out->buffers = owner->buffers.data();
  out->n_children = static_cast<int64_t>(children_.size());
  out->children = owner->pointers.data();
  out->release = ReleaseOwner<TreeOwner, ArrowArray>;
  out->private_data = owner.release();
}

void ExportTree(ArrowTree tree, ArrowArrayStream* out) {
  auto owner = std::make_unique<TreeStream>(std::move(tree));
  *out = {};
  out->get_schema = [](ArrowArrayStream* stream, ArrowSchema* schema) {
    const Status status = Caught([&]() -> Status {
      StreamOf(stream)->tree.ExportSchema(schema);
      return {};
    });
    return status.ok() ? 0 : ENOMEM;
  };
  out->get_next = [](ArrowArrayStream* stream, ArrowArray* array) {
    ArrowArray& own = StreamOf(stream)->array;
    *array = own;
    own.release = nullptr;
    return 0;
  };
  out->get_last_error = [](ArrowArrayStream*) { return "out of memory"; };
  out->release = [](ArrowArrayStream* stream) {
    delete StreamOf(stream);
    stream->release = nullptr;
  };
  out->private_data = owner.release();
}

}  // namespace tessera
