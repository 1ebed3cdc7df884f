#include "data_gen/tpch_text.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/thread_pool.h"
#include "data_gen/ordered_writer.h"

namespace tessera::tpch {
namespace {

using std::string_view;

/// Names the stream of random numbers; the tables of tpch_gen have small numbers.
constexpr uint64_t kTextStream = 1000;
/// The last sentence of a block is cut off. A thread takes a block at a time.
constexpr size_t kBlock = 1'000'000;
/// More than the sentences of a block, which have over ten characters.
constexpr uint64_t kSentencesPerBlock = 1 << 20;
/// Two noun phrases, a verb phrase and a prepositional phrase of the longest words have less.
constexpr size_t kLongestSentence = 512;

// ---- Words ----------------------------------------------------------------------------------------------------------

struct Words {
  uint64_t weight;
  std::vector<string_view> words;
};

/// Words by their frequency: each stands in the list as often as its weight says.
class WordList {
 public:
  WordList(std::initializer_list<Words> lists) {
    for (const Words& list : lists) {
      for (const string_view word : list.words) words_.insert(words_.end(), list.weight, word);
    }
  }
  string_view Pick(RandomRow& random) const { return words_[random.Below(words_.size())]; }

 private:
  std::vector<string_view> words_;
};

const WordList& Nouns() {
  static const WordList words = {
      {40, {"packages", "requests", "accounts", "deposits"}},
      {20, {"foxes", "ideas", "theodolites", "pinto beans", "instructions"}},
      {10, {"dependencies", "excuses", "platelets", "asymptotes"}},
      {5, {"courts", "dolphins"}},
      {1, {"multipliers", "sauternes", "warthogs", "frets",    "dinos",     "attainments",   "somas",    "Tiresias",
           "patterns",    "forges",    "braids",   "frays",    "warhorses", "dugouts",       "notornis", "epitaphs",
           "pearls",      "tithes",    "waters",   "orbits",   "gifts",     "sheaves",       "depths",   "sentiments",
           "decoys",      "realms",    "pains",    "grouches", "escapades", "hockey players"}},
  };
  return words;
}

const WordList& Verbs() {
  static const WordList words = {
      {20, {"sleep", "wake", "are", "cajole", "haggle"}},
      {10, {"nag", "use", "boost"}},
      {5, {"affix", "detect", "integrate"}},
      {1, {"maintain", "nod",    "was",    "lose",   "sublate", "solve",   "thrash", "promise", "engage", "hinder",
           "print",    "x-ray",  "breach", "eat",    "grow",    "impress", "mold",   "poach",   "serve",  "run",
           "dazzle",   "snooze", "doze",   "unwind", "kindle",  "play",    "hang",   "believe", "doubt"}},
  };
  return words;
}

const WordList& Adjectives() {
  static const WordList words = {
      {50, {"regular"}},
      {40, {"final", "ironic"}},
      {30, {"even"}},
      {20, {"special", "pending", "bold", "express", "unusual"}},
      {10, {"silent"}},
      {1,
       {"furious", "sly", "careful", "blithe", "quick", "fluffy", "slow", "quiet", "ruthless", "thin", "close",
        "dogged", "daring", "brave", "stealthy", "permanent", "enticing", "idle", "busy"}},
  };
  return words;
}

const WordList& Adverbs() {
  static const WordList words = {
      {50, {"furiously", "slyly", "carefully"}},
      {40, {"blithely"}},
      {30, {"quickly"}},
      {20, {"fluffily"}},
      {1, {"sometimes", "always",   "never",      "slowly",     "quietly",     "ruthlessly", "thinly", "closely",
           "doggedly",  "daringly", "bravely",    "stealthily", "permanently", "enticingly", "idly",   "busily",
           "regularly", "finally",  "ironically", "evenly",     "boldly",      "silently"}},
  };
  return words;
}

const WordList& Prepositions() {
  static const WordList words = {
      {50, {"about", "above", "according to", "across", "after"}},
      {40, {"against", "along"}},
      {30, {"alongside of", "among"}},
      {20, {"around"}},
      {10, {"at"}},
      {1, {"atop",    "before", "behind", "beneath", "beside", "besides",     "between", "beyond",     "by",
           "despite", "during", "except", "for",     "from",   "in place of", "inside",  "instead of", "into",
           "near",    "of",     "on",     "outside", "over",   "past",        "since",   "through",    "throughout",
           "to",      "toward", "under",  "until",   "up",     "upon",        "without", "with",       "within"}},
  };
  return words;
}

const WordList& Auxiliaries() {
  static const WordList words = {
      {1,
       {"do", "may", "might", "shall", "will", "would", "can", "could", "should", "ought to", "must", "will have to",
        "shall have to", "could have to", "should have to", "must have to", "need to", "try to"}},
  };
  return words;
}

const WordList& Terminators() {
  static const WordList words = {{50, {"."}}, {1, {";", ":", "?", "!", "--"}}};
  return words;
}

// ---- The grammar ----------------------------------------------------------------------------------------------------

/// The forms of a phrase: one character for each part, see Sentence. Weights as of words.
const WordList& SentenceForms() {
  static const WordList forms = {{3, {"nv", "nvp", "nvn"}}, {1, {"npvn", "npvp"}}};
  return forms;
}
const WordList& NounPhrases() {
  static const WordList forms = {{50, {"DJN"}}, {20, {"JN"}}, {10, {"N", "J,JN"}}};
  return forms;
}
const WordList& VerbPhrases() {
  static const WordList forms = {{40, {"VD"}}, {30, {"V"}}, {1, {"XV", "XVD"}}};
  return forms;
}

/// Writes one sentence at a time. Draws at most 20 numbers for it.
class Sentence {
 public:
  Sentence(RandomRow* random, char* to) : random_(random), to_(to) {}

  /// Returns its end.
  char* Write() {
    Put(SentenceForms().Pick(*random_));
    --to_;  // no blank before the terminator
    Append(Terminators().Pick(*random_));
    *to_++ = ' ';
    return to_;
  }

 private:
  void Put(string_view form) {
    for (const char part : form) {
      switch (part) {
        case 'n':
          Put(NounPhrases().Pick(*random_));
          break;
        case 'v':
          Put(VerbPhrases().Pick(*random_));
          break;
        case 'p':
          Word(Prepositions());
          Append("the ");
          Put(NounPhrases().Pick(*random_));
          break;
        case 'N':
          Word(Nouns());
          break;
        case 'V':
          Word(Verbs());
          break;
        case 'J':
          Word(Adjectives());
          break;
        case 'D':
          Word(Adverbs());
          break;
        case 'X':
          Word(Auxiliaries());
          break;
        case ',':
          --to_;
          Append(", ");
          break;
        default:
          break;
      }
    }
  }
  void Word(const WordList& words) {
    Append(words.Pick(*random_));
    *to_++ = ' ';
  }
  void Append(string_view text) {
    std::memcpy(to_, text.data(), text.size());
    to_ += text.size();
  }

  RandomRow* random_;
  char* to_;
};

}  // namespace

Result<TextPool> TextPool::Make(size_t bytes, uint64_t seed, unsigned jobs) {
  TextPool pool;
  try {
    pool.text_ = std::make_unique_for_overwrite<char[]>(bytes);
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kResource, "out of memory for " + std::to_string(bytes / 1'000'000) + " MB of text");
  }
  pool.size_ = bytes;
  ProgressBar progress("text", bytes, ProgressUnit::kBytes);
  ThreadPool threads(static_cast<int>(jobs));
  const std::span<char> text(pool.text_.get(), bytes);
  const auto make_block = [&](size_t block) -> Status {
    if (CaughtSignal() != 0) return {ErrorCode::kCancelled, "interrupted while making text"};
    const std::span<char> to = text.subspan(block * kBlock, std::min(kBlock, bytes - block * kBlock));
    std::vector<char> made(kBlock + kLongestSentence);
    char* end = made.data();
    for (uint64_t i = 0; end < made.data() + to.size(); ++i) {
      RandomRow random(seed, kTextStream, block * kSentencesPerBlock + i);
      end = Sentence(&random, end).Write();
    }
    std::memcpy(to.data(), made.data(), to.size());
    progress.Advance(to.size());
    return Status::Ok();
  };
  TESSERA_TRY(ForEach(&threads, (bytes + kBlock - 1) / kBlock, make_block));
  return pool;
}

}  // namespace tessera::tpch
