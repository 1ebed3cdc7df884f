// Prepared statements and portals: Parse, Bind, Describe, Execute, Close.

#include <utility>

#include "compiler/parse/script.h"
#include "server/connection.h"
#include "server/wire_values.h"

namespace tessera::server {

Status Connection::TakeExtended(char type, std::string_view body) {
  const Status status = [&] {
    switch (type) {
      case 'P':
        return Parse(body);
      case 'B':
        return Bind(body);
      case 'D':
        return Describe(body);
      case 'E':
        return Execute(body);
      default:
        return Close(body);
    }
  }();
  if (!status.ok()) {
    // (A position is one of the statement, which the client knows.)
    std::string text;
    if (type == 'P') {
      if (const Result<ParseMessage> read = ReadParse(body); read.ok()) text = read->sql;
    } else if (type == 'E') {
      const Result<ExecuteMessage> read = ReadExecute(body);
      if (const auto portal = portals_.find(read.ok() ? read->portal : ""); portal != portals_.end())
        text = portal->second.sql;
    }
    SendReport(text.empty() ? Status(status.kind(), status.message(), status.hint()) : status, text, 0);
  }
  return status;
}

Status Connection::Parse(std::string_view body) {
  TESSERA_ASSIGN(ParseMessage message, ReadParse(body));
  if (!message.name.empty() && statements_.contains(message.name)) {
    return {ErrorKind::kDuplicatePrepared, "prepared statement \"" + message.name + "\" already exists"};
  }
  const std::vector<StatementText> statements = SplitStatements(message.sql);
  if (statements.size() > 1) return {ErrorKind::kSyntax, "cannot insert multiple commands into a prepared statement"};
  auto prepared = std::make_shared<Prepared>();
  if (!statements.empty()) prepared->sql = statements[0].sql;
  prepared->types = std::move(message.types);
  statements_.insert_or_assign(std::move(message.name), std::move(prepared));
  out_.Begin('1');
  out_.End();
  return Status::Ok();
}

Result<const StatementDescription*> Connection::DescriptionOf(Prepared* statement) {
  // (A table may have become another one, so what a statement returns is asked each time.)
  if (statement->sql.empty()) {  // with it drivers ask whether the server is there
    statement->description.emplace();
    return &*statement->description;
  }
  TESSERA_TRY(OpenSession());
  std::vector<SqlType> declared;
  for (const int32_t oid : statement->types) {
    std::optional<SqlType> type = TypeOfOid(oid);
    if (type && type->id == TypeId::kDecimal) type.reset();  // of how many digits is not said
    declared.push_back(type.value_or(SqlType::Of(TypeId::kNull)));
  }
  TESSERA_ASSIGN(statement->description, session_->Describe(statement->sql, std::move(declared)));
  return &*statement->description;
}

Status Connection::Bind(std::string_view body) {
  TESSERA_ASSIGN(BindMessage message, ReadBind(body));
  const auto found = statements_.find(message.statement);
  if (found == statements_.end()) {
    return {ErrorKind::kUndefinedPrepared, message.statement.empty()
                                               ? std::string("unnamed prepared statement does not exist")
                                               : "prepared statement \"" + message.statement + "\" does not exist"};
  }
  const std::shared_ptr<Prepared>& statement = found->second;
  TESSERA_TRY(CheckFormats(message.formats, message.values.size()));
  if (!message.portal.empty() && portals_.contains(message.portal)) {
    return {ErrorKind::kDuplicateObject, "portal \"" + message.portal + "\" already exists"};
  }
  if (statement->description && message.values.size() != statement->description->parameters.size()) {
    return ProtocolError("bind message supplies " + std::to_string(message.values.size()) +
                         " parameters, but prepared statement \"" + message.statement + "\" requires " +
                         std::to_string(statement->description->parameters.size()));
  }
  Portal portal;
  for (size_t i = 0; i < message.values.size(); ++i) {
    const bool binary = IsBinary(message.formats, i);
    int32_t oid = i < statement->types.size() ? statement->types[i] : 0;
    if (binary && oid == 0) {
      // The client has been told the type, or takes it for known.
      if (!statement->description) TESSERA_TRY(DescriptionOf(statement.get()).status());
      const auto& types = statement->description->parameters;
      if (i < types.size()) oid = WireTypeOf(types[i]).oid;
    }
    TESSERA_ASSIGN(portal.values.emplace_back(), ReadParameter(message.values[i], binary, oid));
  }
  portal.sql = statement->sql;
  portal.formats = std::move(message.result_formats);
  portal.statement = statement;
  portals_.insert_or_assign(std::move(message.portal), std::move(portal));
  out_.Begin('2');
  out_.End();
  return Status::Ok();
}

Status Connection::SendRowDescription(Prepared* statement, const std::vector<int16_t>& formats) {
  if (!statement->description) TESSERA_TRY(DescriptionOf(statement).status());
  const std::vector<vm::ResultColumn>& columns = statement->description->columns;
  if (columns.empty()) {
    out_.Begin('n');
    out_.End();
    return Status::Ok();
  }
  TESSERA_TRY(CheckFormats(formats, columns.size()));
  WriteRowDescription(columns, formats, &out_);
  return Status::Ok();
}

Status Connection::Describe(std::string_view body) {
  TESSERA_ASSIGN(const NameMessage message, ReadName(body));
  if (message.is_portal) {
    const auto portal = portals_.find(message.name);
    if (portal == portals_.end())
      return {ErrorKind::kUndefinedPortal, "portal \"" + message.name + "\" does not exist"};
    return SendRowDescription(portal->second.statement.get(), portal->second.formats);
  }
  const auto found = statements_.find(message.name);
  if (found == statements_.end())
    return {ErrorKind::kUndefinedPrepared, "prepared statement \"" + message.name + "\" does not exist"};
  Prepared& statement = *found->second;
  TESSERA_ASSIGN(const StatementDescription* const description, DescriptionOf(&statement));
  out_.Begin('t');
  out_.Int16(static_cast<int16_t>(description->parameters.size()));
  for (size_t i = 0; i < description->parameters.size(); ++i) {
    const int32_t declared = i < statement.types.size() ? statement.types[i] : 0;
    out_.Int32(declared != 0 ? declared : WireTypeOf(description->parameters[i]).oid);
  }
  out_.End();
  return SendRowDescription(&statement, {});
}

Status Connection::Execute(std::string_view body) {
  TESSERA_ASSIGN(const ExecuteMessage message, ReadExecute(body));
  const auto found = portals_.find(message.portal);
  if (found == portals_.end()) return {ErrorKind::kUndefinedPortal, "portal \"" + message.portal + "\" does not exist"};
  Portal& portal = found->second;
  if (portal.sql.empty()) {
    out_.Begin('I');
    out_.End();
    return Status::Ok();
  }
  const auto way = [&](KeptResult* kept) {
    return RowSender::Way{false, portal.formats, &out_, [this] { return Send(); }, kept, &service_.options};
  };
  if (portal.kept == nullptr) {
    auto kept = std::make_unique<KeptResult>();
    const bool all = message.most_rows <= 0;
    RowSender sender(portal.sql, way(all ? nullptr : kept.get()));
    TESSERA_TRY(RunStatement(portal.sql, &portal.values, Part::kAll, &sender));
    if (all) kept->tag = "SELECT 0";
    portal.kept = std::move(kept);
    if (all) return Status::Ok();
  }
  KeptResult& kept = *portal.kept;
  for (int32_t row = 0; !kept.batches.empty(); ++row) {
    if (message.most_rows > 0 && row == message.most_rows) {
      out_.Begin('s');  // PortalSuspended
      out_.End();
      return Status::Ok();
    }
    WriteRow(kept.batches[0], kept.row, portal.formats, &out_);
    if (++kept.row == kept.batches[0].rows) {
      kept.batches.pop_front();
      kept.row = 0;
      TESSERA_TRY(Send());
    }
  }
  WriteDone(kept.tag, &out_);
  return Status::Ok();
}

Status Connection::Close(std::string_view body) {
  TESSERA_ASSIGN(const NameMessage message, ReadName(body));
  if (message.is_portal) {
    portals_.erase(message.name);
  } else {
    statements_.erase(message.name);
  }
  out_.Begin('3');
  out_.End();
  return Status::Ok();
}

}  // namespace tessera::server
