/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the OpenAPI document from the tables of routes and shapes. The schemas of bodies come
 * from the shapes; the rest has no struct and is put together by hand.
 */
#include <stdio.h>
#include <string.h>

#include <flyball/version.h>

#include "serve/v1_call.h"

/* ---- schemas ---- */

static void add_shape(json_t *schemas, const struct shape *shape, bool closed)
{
    if (json_object_get(schemas, shape->name) != NULL)
        return;
    json_object_set_new(schemas, shape->name, shape_schema(shape, closed));
    for (size_t i = 0; i < shape->count; i++) {
        if (shape_inside(&shape->fields[i]) != NULL)
            add_shape(schemas, shape->fields[i].shape, closed);
    }
}

/* Requests take no other members; answers may get new ones later. */
static json_t *make_schemas(void)
{
    json_t *schemas = json_object();

    for (size_t i = 0; i < API_OPERATIONS; i++) {
        if (api_routes[i].asks != NULL)
            add_shape(schemas, api_routes[i].asks, true);
    }
    for (size_t i = 0; i < API_OPERATIONS; i++) {
        if (api_routes[i].answers != NULL)
            add_shape(schemas, api_routes[i].answers, false);
    }
    add_shape(schemas, &shape_failure, false);
    return schemas;
}

/* ---- bodies ---- */

static json_t *content(enum api_content by, const struct shape *shape)
{
    json_t *reference;

    if (by == API_BYTES || shape == NULL)
        return json_pack("{s:{s:{s:s, s:s}}}", API_BYTES_TYPE, "schema", "type", "string", "format",
                         "binary");
    reference = json_pack("{s:s+}", "$ref", "#/components/schemas/", shape->name);

    if (by == API_LINES)
        return json_pack("{s:{s:{s:s, s:s}, s:o}}", API_LINES_TYPE, "schema", "type", "string", "description",
                         "one object a line", "x-each-line", reference);
    return json_pack("{s:{s:o}}", API_JSON_TYPE, "schema", reference);
}

static json_t *request_body(const struct api_route *route)
{
    return json_pack("{s:b, s:o}", "required", 1, "content", content(route->asks_by, route->asks));
}

/* ---- answers ---- */

static const struct {
    const char *status, *about;
} failures[] = {
    {"400", "The request is malformed, or a value does not fit the job: FLY_EUSAGE"},
    {"401", "No token, or one that is not valid: FLY_EPERM"},
    {"403", "The token lacks the scope: FLY_EPERM"},
    {"404", "No such job or trial: FLY_ENOTFOUND; no such path: FLY_EUNSUPPORTED"},
    {"405", "The path does not take this method; Allow names those that it takes: FLY_EUSAGE"},
    {"409", "It contradicts what is on record (FLY_ECONFLICT), or the trial has ended (FLY_ESTATE)"},
    {"413", "A body, text or list is too long: FLY_ELIMIT"},
    {"422", "A member is missing, unknown, of another kind or out of its range: FLY_EDATA"},
    {"500", "The store failed, or the service has a defect: FLY_EREAD, FLY_EINTERNAL"},
    {"501", "The store or a policy is not offered here: FLY_EUNSUPPORTED"},
    {"503", "Ask again after Retry-After seconds: FLY_EBUSY, FLY_EUNREACHABLE; after FLY_EUNSURE too, since "
            "a repeated request is recognised"},
    {"507", "The store's disk is full or failing: FLY_EWRITE"},
};

static json_t *failure_response(const char *about)
{
    return json_pack("{s:s, s:o}", "description", about, "content", content(API_JSON, &shape_failure));
}

static json_t *responses(const struct api_route *route)
{
    json_t *all = json_object();

    if (route->answers_by == API_NOTHING)
        json_object_set_new(all, "204", json_pack("{s:s}", "description", "Done"));
    else
        json_object_set_new(all, "200",
                            json_pack("{s:s, s:o}", "description",
                                      route->answers != NULL ? route->answers->about : route->about,
                                      "content", content(route->answers_by, route->answers)));
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
        json_object_set_new(all, failures[i].status, failure_response(failures[i].about));
    return all;
}

/* ---- parameters ---- */

static json_t *path_parameters(const struct api_route *route)
{
    json_t *all = json_array();

    if (strstr(route->path, "{job}") != NULL)
        json_array_append_new(all, json_pack("{s:s, s:s, s:b, s:s, s:{s:s, s:s, s:i}}", "name", "job", "in",
                                             "path", "required", 1, "description", "The job's name", "schema",
                                             "type", "string", "pattern", "^[a-zA-Z0-9_-][a-zA-Z0-9_.-]*$",
                                             "maxLength", (int)JOB_NAME_MAX));
    if (strstr(route->path, "{trial}") != NULL)
        json_array_append_new(all, json_pack("{s:s, s:s, s:b, s:s, s:{s:s, s:i}}", "name", "trial", "in",
                                             "path", "required", 1, "description", "As proposed", "schema",
                                             "type", "integer", "minimum", 1));
    return all;
}

static json_t *query_schema(const struct api_parameter *parameter)
{
    return parameter->text
               ? json_pack("{s:s, s:i}", "type", "string", "maxLength", (int)STORE_KEY_MAX)
               : json_pack("{s:s, s:I}", "type", "integer", "minimum", (json_int_t)parameter->least);
}

static json_t *parameters(const struct api_route *route)
{
    json_t *all = path_parameters(route);

    for (size_t i = 0; i < API_PARAMETERS; i++) {
        const struct api_parameter *parameter = &api_parameters[i];

        if (route != &api_routes[API_READ] &&
            (route != &api_routes[API_DIGEST] || strcmp(parameter->name, "limit") != 0))
            continue;

        json_array_append_new(all,
                              json_pack("{s:s, s:s, s:s, s:o}", "name", parameter->name, "in", "query",
                                        "description", parameter->about, "schema", query_schema(parameter)));
    }
    return all;
}

/* ---- the whole ---- */

static const char *const rights[] = {
    [API_TO_READ] = "read", [API_TO_TRAIN] = "train", [API_TO_MANAGE] = "manage"};

static json_t *operation(const struct api_route *route)
{
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:o, s:o}", "operationId", route->name, "summary", route->about, "x-scope",
                  rights[route->right], "parameters", parameters(route), "responses", responses(route));

    if (route->asks_by != API_NOTHING)
        json_object_set_new(json, "requestBody", request_body(route));
    return json;
}

static json_t *paths(void)
{
    json_t *all = json_object();

    for (size_t i = 0; i < API_OPERATIONS; i++) {
        const struct api_route *route = &api_routes[i];
        json_t *path = json_object_get(all, route->path);
        char method[16];

        if (path == NULL) {
            path = json_object();
            json_object_set_new(all, route->path, path);
        }
        snprintf(method, sizeof method, "%s", route->method);
        for (char *at = method; *at != '\0'; at++)
            *at = (char)(*at | 0x20); /* of upper case letters */
        json_object_set_new(path, method, operation(route));
    }
    return all;
}

static const char about[] =
    "Recurring jobs: what to run next, and what became of it. Every request may be repeated after a lost "
    "answer: it is recognised, and answered as the first time. Units stand in names; null is unknown, or "
    "without an end. A token's scope is read, train or manage, and each holds those before it.";

json_t *v1_document(void)
{
    json_t *info =
        json_pack("{s:s, s:s, s:s, s:{s:s, s:s}}", "title", "Flyball", "version", FLY_VERSION, "description",
                  about, "license", "name", "Apache-2.0", "identifier", "Apache-2.0");
    json_t *components = json_pack("{s:o, s:{s:{s:s, s:s}}}", "schemas", make_schemas(), "securitySchemes",
                                   "token", "type", "http", "scheme", "bearer");

    return json_pack("{s:s, s:o, s:o, s:o, s:[{s:[]}, {}]}", "openapi", "3.1.0", "info", info, "paths",
                     paths(), "components", components, "security", "token");
}
