// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/json.h"

#include "core/timestamp.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace gpuq::report {
namespace {

using Document = nlohmann::ordered_json;

constexpr int k_schema = 1;
constexpr int k_indent = 2;

Document document_of(const Json& json);

struct ToDocument {
    Document operator()(std::monostate) const { return nullptr; }
    Document operator()(const Json::Members& members) const
    {
        Document object = Document::object();
        for (const auto& [name, member] : members) {
            object[name] = document_of(member);
        }
        return object;
    }
    Document operator()(const Json::Elements& elements) const
    {
        Document array = Document::array();
        for (const Json& element : elements) {
            array.push_back(document_of(element));
        }
        return array;
    }
    Document operator()(const auto& plain) const { return plain; }
};

Document document_of(const Json& json)
{
    return std::visit(ToDocument{}, json.value());
}

} // namespace

Json::Json(double value)
{
    if (std::isfinite(value)) {
        m_value = value;
    }
}

Json::Json(Time time)
    : m_value(to_iso8601(time))
{
}

Json::Json(JobId id)
    : m_value(std::int64_t{id.value})
{
}

Json Json::object(Members members)
{
    Json json;
    json.m_value = std::move(members);
    return json;
}

Json Json::array(Elements elements)
{
    Json json;
    json.m_value = std::move(elements);
    return json;
}

Json Json::array(const std::vector<std::string>& texts)
{
    return array(Elements(texts.begin(), texts.end()));
}

std::string json_document(const Json::Members& members)
{
    Document document = {{"schema", k_schema}};
    document.update(document_of(Json::object(members)));
    const bool ascii = true;
    return document.dump(k_indent, ' ', ascii, Document::error_handler_t::replace) + "\n";
}

} // namespace gpuq::report
