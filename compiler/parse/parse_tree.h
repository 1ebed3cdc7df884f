// The parse tree as the binder reads it: libpg_query's JSON in a compact form. A JSON object {"A_Expr": {...}} becomes
// one node with a tag; names of tags and fields are small integers; strings are views of the JSON text, unescaped in
// place.
//
// The reader is our own because every query goes through it: it takes 5 us for the 4 KB of a long SSB query's tree,
// where the JSON library's DOM took 59 us and its SAX interface 29 us with empty handlers (g++ 12, one core of a Xeon).
// It trusts the structure of its input, which comes from libpg_query and not from the user. It never recurses.
//
// Start at: ParseNode. A tree is immutable once built.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera {

class DialectText;

enum class Tag : uint8_t {
  kNone,   ///< a list, a plain value, or an object without a tag (its field implies what it is)
  kOther,  ///< a tag that the binder does not know: ParseNode::text() has its name
#define TESSERA_TAG(name) k##name,
#include "compiler/parse/parse_words.def"
};

enum class Field : uint8_t {
  kNone,
#define TESSERA_FIELD(name) k_##name,
#include "compiler/parse/parse_words.def"
};

class ParseNode {
 public:
  Tag tag() const { return tag_; }
  bool Is(Tag tag) const { return tag_ == tag; }
  /// Byte offset in the SQL text; -1 if the node has none.
  int location() const { return location_; }
  /// The least location in this node and its children, down to `levels` levels; -1 if there is none.
  int FirstLocation(int levels = 8) const;
  /// A string's characters; the name of a Tag::kOther.
  std::string_view text() const { return {text_, static_cast<size_t>(number_)}; }
  /// A number's or boolean's value.
  int64_t number() const { return number_; }
  /// The field of this object, or nullptr.
  const ParseNode* Get(Field field) const {
    for (const ParseNode* n = first_; n != nullptr; n = n->next_) {
      if (n->field_ == field) return n;
    }
    return nullptr;
  }
  /// The field's characters; empty if there is no such field.
  std::string_view Text(Field field) const {
    const ParseNode* n = Get(field);
    return n != nullptr ? n->text() : std::string_view();
  }
  /// The field's number or boolean, which libpg_query leaves out where it is 0.
  int64_t Number(Field field) const {
    const ParseNode* n = Get(field);
    return n != nullptr ? n->number_ : 0;
  }

  /// Elements of a list, fields of an object. `for (const ParseNode& n : list)`.
  class Iterator {
   public:
    explicit Iterator(const ParseNode* n) : n_(n) {}
    const ParseNode& operator*() const { return *n_; }
    const ParseNode* operator->() const { return n_; }
    Iterator& operator++() {
      n_ = n_->next_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const ParseNode* n_;
  };
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(nullptr); }
  const ParseNode* first() const { return first_; }
  const ParseNode* next() const { return next_; }
  size_t size() const {
    size_t n = 0;
    for (const ParseNode* c = first_; c != nullptr; c = c->next_) ++n;
    return n;
  }

 private:
  friend class ParseTree;
  Tag tag_ = Tag::kNone;
  Field field_ = Field::kNone;
  int32_t location_ = -1;
  int64_t number_ = 0;  // also the length of text_
  const char* text_ = "";
  ParseNode* first_ = nullptr;
  ParseNode* next_ = nullptr;
};

class ParseTree {
 public:
  /// Builds the tree of `json`, which it changes and keeps. Locations are those of the user's text, which the parser
  /// saw as `source`. Errors: kInternal if it is not JSON.
  static Result<ParseTree> Build(std::shared_ptr<char> json, const DialectText& source);
  const ParseNode& root() const { return *root_; }

 private:
  ParseNode* NewNode();

  std::shared_ptr<char> json_;
  std::vector<std::unique_ptr<ParseNode[]>> blocks_;
  size_t used_ = 0;  // nodes of the last block
  size_t block_size_ = 0;
  ParseNode* root_ = nullptr;
};

}  // namespace tessera
