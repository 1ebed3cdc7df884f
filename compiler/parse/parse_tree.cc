// The reader of libpg_query's JSON.
#include "compiler/parse/parse_tree.h"

#include <array>
#include <cstring>
#include <string>

#include "base/interrupt.h"
#include "compiler/parse/dialect_text.h"

namespace tessera {
namespace {

/// One word and its numbers as a tag and as a field.
struct Word {
  std::string_view text;
  uint8_t code = 0;
};

/// Open addressing; the sizes are at least four times the words, so that nearly every search is one comparison.
template <size_t kSize>
class WordTable {
 public:
  template <size_t kWords>
  explicit WordTable(const std::array<Word, kWords>& words) {
    static_assert(kWords * 4 <= kSize && (kSize & (kSize - 1)) == 0);
    for (const Word& w : words) {
      size_t i = Hash(w.text);
      while (!slots_[i].text.empty()) i = (i + 1) & (kSize - 1);
      slots_[i] = w;
    }
  }
  /// 0 if the word is unknown.
  uint8_t Find(std::string_view text) const {
    for (size_t i = Hash(text); !slots_[i].text.empty(); i = (i + 1) & (kSize - 1)) {
      if (slots_[i].text == text) return slots_[i].code;
    }
    return 0;
  }

 private:
  /// REQUIRES: text is not empty.
  static size_t Hash(std::string_view text) {
    const auto at = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(text[i])); };
    return (text.size() * 41 + at(0) * 7 + at(text.size() / 2) * 61 + at(text.size() - 1) * 13) & (kSize - 1);
  }
  std::array<Word, kSize> slots_;
};

constexpr std::array kTagWords = {
#define TESSERA_TAG(name) Word{#name, static_cast<uint8_t>(Tag::k##name)},
#include "compiler/parse/parse_words.def"
};
constexpr std::array kFieldWords = {
#define TESSERA_FIELD(name) Word{#name, static_cast<uint8_t>(Field::k_##name)},
#include "compiler/parse/parse_words.def"
};

const WordTable<512>& Tags() {
  static const WordTable<512> table(kTagWords);
  return table;
}
const WordTable<1024>& Fields() {
  static const WordTable<1024> table(kFieldWords);
  return table;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Reads a string; `*p` points just after its opening quote. Unescapes it in place and leaves *p after the closing
/// quote. False if the text ends before it. libpg_query escapes only quotes, backslashes and control characters.
bool ReadString(char** p, std::string_view* out) {
  char* const start = *p;
  char* from = start;
  while (*from != '"' && *from != '\\' && *from != 0) ++from;
  char* to = from;
  while (*from != '"') {
    if (*from == 0) return false;
    if (*from != '\\') {
      *to++ = *from++;
      continue;
    }
    ++from;
    switch (*from++) {
      case 'n':
        *to++ = '\n';
        break;
      case 't':
        *to++ = '\t';
        break;
      case 'r':
        *to++ = '\r';
        break;
      case 'b':
        *to++ = '\b';
        break;
      case 'f':
        *to++ = '\f';
        break;
      case '"':
        *to++ = '"';
        break;
      case '/':
        *to++ = '/';
        break;
      case '\\':
        *to++ = '\\';
        break;
      case 'u': {
        int code = 0;
        for (int i = 0; i < 4; ++i) {
          const int digit = HexDigit(*from);
          if (digit < 0) return false;
          code = code * 16 + digit;
          ++from;
        }
        if (code > 127) return false;  // never written: only control characters are escaped so
        *to++ = static_cast<char>(code);
        break;
      }
      default:
        return false;
    }
  }
  *out = {start, static_cast<size_t>(to - start)};
  *p = from + 1;
  return true;
}

}  // namespace

int ParseNode::FirstLocation(int levels) const {
  if (location_ >= 0) return location_;
  int least = -1;
  if (levels == 0) return least;
  for (const ParseNode* n = first_; n != nullptr; n = n->next_) {
    const int at = n->FirstLocation(levels - 1);
    if (at >= 0 && (least < 0 || at < least)) least = at;
  }
  return least;
}

ParseNode* ParseTree::NewNode() {
  if (used_ == block_size_) {
    ThrowIfInterrupted();
    // Small statements take one block; long ones soon reach blocks of half a megabyte.
    block_size_ = block_size_ == 0 ? 512 : (block_size_ < 16384 ? block_size_ * 2 : block_size_);
    blocks_.push_back(std::make_unique<ParseNode[]>(block_size_));
    used_ = 0;
  }
  return &blocks_.back()[used_++];
}

Result<ParseTree> ParseTree::Build(std::shared_ptr<char> json, const DialectText& source) {
  const Status broken(ErrorCode::kInternal, "the parser returned a tree that cannot be read");
  ParseTree tree;
  tree.json_ = std::move(json);
  char* p = tree.json_.get();

  // An open container: where its next child goes, and whether it is the inner object of {"Tag": {...}}, which ends with
  // two braces.
  struct Open {
    ParseNode* node;
    ParseNode** tail;
    bool is_list;
    bool tagged;
  };
  std::vector<Open> open;
  ParseNode top;
  ParseNode** tail = &top.first_;

  while (true) {
    // Reads one value into *tail; its field, if any, is known.
    Field field = Field::kNone;
    bool keep = true;
    bool is_location = false;
    if (!open.empty() && !open.back().is_list) {
      std::string_view name;
      if (*p++ != '"' || !ReadString(&p, &name) || *p++ != ':') return broken;
      is_location = name == "location";
      field = name.empty() ? Field::kNone : static_cast<Field>(Fields().Find(name));
      keep = field != Field::kNone;
    }
    if (is_location) {
      bool negative = *p == '-';
      if (negative) ++p;
      int32_t v = 0;
      while (*p >= '0' && *p <= '9') v = v * 10 + (*p++ - '0');
      open.back().node->location_ = negative ? -1 : source.ToOriginal(v);
    } else if (*p == '{' || *p == '[') {
      const bool is_list = *p++ == '[';
      ParseNode* node = tree.NewNode();
      node->field_ = field;
      bool tagged = false;
      if (!is_list && p[0] == '"' && p[1] >= 'A' && p[1] <= 'Z') {
        // {"Tag":{...}}: the two braces are one node.
        ++p;
        std::string_view name;
        if (!ReadString(&p, &name) || *p++ != ':' || *p++ != '{') return broken;
        const auto tag = static_cast<Tag>(Tags().Find(name));
        node->tag_ = tag == Tag::kNone ? Tag::kOther : tag;
        if (node->tag_ == Tag::kOther) {
          node->text_ = name.data();
          node->number_ = static_cast<int64_t>(name.size());
        }
        tagged = true;
      }
      if (keep) {
        *tail = node;
        tail = &node->next_;
      }
      if (!open.empty()) open.back().tail = tail;
      open.push_back({node, &node->first_, is_list, tagged});
      tail = &node->first_;
      if (*p != '}' && *p != ']') continue;  // the first child
    } else {
      ParseNode value;
      value.field_ = field;
      if (*p == '"') {
        ++p;
        std::string_view text;
        if (!ReadString(&p, &text)) return broken;
        value.text_ = text.data();
        value.number_ = static_cast<int64_t>(text.size());
      } else if (std::strncmp(p, "true", 4) == 0) {
        value.number_ = 1;
        p += 4;
      } else if (std::strncmp(p, "false", 5) == 0) {
        p += 5;
      } else if (std::strncmp(p, "null", 4) == 0) {
        p += 4;
      } else if (*p == '-' || (*p >= '0' && *p <= '9')) {
        const bool negative = *p == '-';
        if (negative) ++p;
        uint64_t v = 0;
        while (*p >= '0' && *p <= '9') v = v * 10 + static_cast<uint64_t>(*p++ - '0');
        value.number_ = static_cast<int64_t>(negative ? ~v + 1 : v);
      } else {
        return broken;
      }
      if (keep) {
        *tail = tree.NewNode();
        **tail = value;
        tail = &(*tail)->next_;
        if (!open.empty()) open.back().tail = tail;
      }
    }
    // After a value: close the containers that end here, then go on after a comma.
    while (*p == '}' || *p == ']') {
      if (open.empty()) return broken;
      ++p;
      if (open.back().tagged && *p++ != '}') return broken;
      open.pop_back();
      if (!open.empty()) tail = open.back().tail;
    }
    if (open.empty()) break;
    if (*p++ != ',') return broken;
  }
  tree.root_ = top.first_;
  if (tree.root_ == nullptr) return broken;
  return tree;
}

}  // namespace tessera
