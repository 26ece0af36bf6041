"""What questions in French, German, Spanish, Japanese and Chinese ask for, in the English words of API documents.

Words are written without accents. A Latin one stands for its stem: endings of verbs and nouns are taken off before it
is looked up. Small on purpose: the verbs of APIs, and the things that most of them have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

_WORD = re.compile("[a-z]+")

_Row: TypeAlias = tuple[str, str, str, str, str, str]

_DEEDS: tuple[_Row, ...] = (
    ("list", "list enumer recens", "auflist aufzahl", "listar listad listam", "一覧 リスト 列挙", "列出 列表 清单"),
    ("get", "obten obtien recuper recher consult", "abruf hole holen abhol", "obten obtien recuper consult traer",
     "取得 参照 取って", "获取 取得 得到 查看 读取 獲取"),
    ("show", "affich montr voir", "zeig anzeig anseh", "mostrar muestr", "表示 見せ 見る 閲覧", "显示 展示 顯示"),
    ("find", "trouv", "find", "encontr encuentr", "見つけ", "找到 查找"),
    ("search", "recherch cherch", "suche suchen sucht durchsuch", "busc busqu", "検索 探す 探し", "搜索 查询 搜尋"),
    ("create", "creer cree creez creation", "erstell anleg erzeug", "crear crea cree creacion",
     "作成 作る 作って 新規", "创建 新建 建立 創建"),
    ("add", "ajout", "hinzufug hinzu", "agreg anadir anade anadi", "追加 加える", "添加 新增 增加"),
    ("register", "enregistr inscri", "registrier anmeld", "registr inscrib", "登録", "注册 登记 註冊"),
    ("update", "mettre actualis modifi miseajour", "aktualisier bearbeit", "actualiz modific", "更新", "更新 修改"),
    ("change", "chang", "ander andern verander", "cambi", "変更", "更改 变更 改变"),
    ("edit", "edite editer editez", "editier", "editar edita", "編集", "编辑 編輯"),
    ("rename", "renomm", "umbenenn", "renombr", "改名 名前を変", "重命名 改名"),
    ("replace", "remplac", "ersetz", "reemplaz sustitu", "置換 置き換", "替换"),
    ("set", "definir definis definiss", "setze setzen festleg", "establec defin", "設定する", "设定"),
    ("delete", "supprim effac", "losch losche loesch", "elimin borr suprim", "削除 消去 消す", "删除 刪除"),
    ("remove", "enlev retir", "entfern", "quitar quita remov", "除去 取り除 外す", "移除 去除"),
    ("cancel", "annul", "stornier abbrech kundig kuendig", "cancela anular anula", "キャンセル 取消 取り消", "取消"),
    ("send", "envoi envoy", "send sende versend schick", "envi", "送信 送る 送って", "发送 寄送 發送"),
    ("upload", "televers", "hochlad hochgelad hoch", "subir sube subida cargar", "アップロード 投稿", "上传 上載 上傳"),
    ("download", "telecharg", "herunterlad herunter runterlad", "descarg bajar", "ダウンロード", "下载 下載"),
    ("start", "demarr commenc lanc", "starte starten beginn", "inici comenz empez", "開始 起動", "开始 启动 啟動"),
    ("stop", "arret", "stoppe stoppen anhalt beend", "deten parar", "停止 終了", "停止 结束"),
    ("run", "execut", "ausfuhr", "ejecut", "実行", "执行 运行"),
    ("enable", "activer activez", "aktivier einschalt", "activar activa habilit", "有効", "启用 激活 開啟"),
    ("disable", "desactiv", "deaktivier ausschalt", "desactiv deshabilit", "無効", "禁用 停用"),
    ("check", "verifi", "pruf uberpruf", "verific comprob", "確認 チェック", "检查 确认 核对"),
    ("copy", "copi", "kopier", "copia copiar", "コピー 複製", "复制 拷贝"),
    ("move", "deplac", "verschieb", "mover mueve traslad", "移動", "移动"),
    ("merge", "fusionn", "zusammenfuhr", "fusion", "マージ 統合", "合并"),
    ("close", "ferm", "schliess", "cerrar cierr", "閉じ クローズ", "关闭 關閉"),
    ("open", "ouvr", "offne offnen", "abrir abre", "開く オープン", "打开 开启"),
    ("pay", "pay", "bezahl", "pagar pagad", "支払", "支付 付款"),
    ("place", "passer passez", "aufgeb", "realiz hacer", "発注", "下单"),
    ("ship", "expedi livr", "versand liefer", "envio entreg despach", "発送 出荷 配送", "发货 配送 运送"),
    ("book", "reserv", "buch reservier", "reserv", "予約", "预订 预约"),
    ("count", "compte compter nombre", "zahl anzahl", "contar cuantos cuantas cantidad", "件数 数える", "数量 计数"),
    ("login", "connexion connecter connectez", "einlogg anmeldung", "inicia sesion", "ログイン", "登录 登入"),
    ("logout", "deconnexion deconnect", "auslogg abmeld", "cerrarsesion", "ログアウト", "注销 登出"),
    ("subscribe", "abonn souscri", "abonnier", "suscrib", "購読", "订阅"),
    ("refund", "rembours", "erstatt", "reembols", "返金", "退款"),
    ("approve", "approuv", "genehmig", "aprob", "承認", "批准 审批"),
    ("invite", "invit", "einlad", "invit", "招待", "邀请"),
    ("export", "export", "exportier", "export", "エクスポート 出力", "导出"),
    ("import", "import", "importier", "import", "インポート", "导入"),
)  # fmt: skip
"""What is done: an English word, then what stands for it in French, German, Spanish, Japanese and Chinese."""

_THINGS: tuple[_Row, ...] = (
    ("order", "commande commandes", "bestell auftrag auftrage", "pedid orden ordenes",
     "注文 受注 オーダー", "订单 訂單"),
    ("customer", "client", "kund", "client", "顧客 お客様 カスタマー", "客户 顾客 客戶"),
    ("user", "utilisateur", "benutzer nutzer anwender", "usuari", "ユーザー ユーザ 利用者", "用户 使用者 用戶"),
    ("member", "membre", "mitglied", "miembr", "メンバー 会員", "成员 会员"),
    ("account", "compte", "konto konten", "cuent", "アカウント 口座", "账户 账号 帐号"),
    ("person", "personn", "person", "person", "人物", "人物"),
    ("report", "rapport", "bericht", "informe report", "レポート 報告", "报告 报表 報表"),
    ("sale", "vent", "verkauf verkaufe umsatz", "vent", "売上 販売", "销售"),
    ("file", "fichier", "datei", "archivo archivos fichero", "ファイル", "文件 檔案"),
    ("folder", "dossier", "ordner", "carpeta carpetas", "フォルダ", "文件夹"),
    ("document", "document", "dokument", "document", "ドキュメント 文書", "文档"),
    ("setting", "parametr reglag", "einstell", "configuracion ajust", "設定", "设置 配置 設置"),
    ("workspace", "espac", "arbeitsbereich", "espaci", "ワークスペース", "工作区 工作空间"),
    ("status", "statut etat", "zustand", "estad", "状態 ステータス", "状态"),
    ("pet", "animal animaux", "haustier tiere", "mascot", "ペット", "宠物"),
    ("store", "magasin boutiqu", "laden geschaft", "tiend", "店舗 ショップ ストア", "商店 店铺"),
    ("inventory", "inventair stocks", "bestand lagerbestand", "inventari existenci", "在庫", "库存 庫存"),
    ("product", "produit", "produkt", "product", "商品 製品", "商品 产品"),
    ("category", "categori", "kategori", "categori", "カテゴリー カテゴリ", "类别 分类"),
    ("price", "prix tarif", "preis", "preci", "価格 値段", "价格"),
    ("payment", "paiement", "zahlung", "pago pagos", "支払い 決済", "支付"),
    ("invoice", "factur", "rechnung", "factur", "請求書", "发票 账单"),
    ("subscription", "abonnement", "abonnement abo", "suscripcion", "サブスクリプション 定期", "订阅"),
    ("image", "imag", "bild", "imagen", "画像", "图片 图像"),
    ("photo", "photograph", "foto", "foto", "写真", "照片"),
    ("video", "video", "video", "video", "動画 ビデオ", "视频"),
    ("message", "messag", "nachricht", "mensaj", "メッセージ", "消息 信息"),
    ("email", "courriel", "mail", "correo", "メール", "邮件 电子邮件 郵件"),
    ("channel", "canal canaux", "kanal kanale", "canal", "チャンネル", "频道"),
    ("comment", "commentair", "kommentar", "comentari", "コメント", "评论"),
    ("review", "avis", "bewert", "resen", "レビュー", "评价"),
    ("event", "evenement", "veranstalt ereignis", "event", "イベント", "事件 活动"),
    ("calendar", "calendrier agend", "kalender", "calendari", "カレンダー", "日历"),
    ("upcoming", "venir prochain", "kommend bevorsteh", "proxim", "今後", "即将"),
    ("location", "lieu lieux emplacement", "standort", "ubicacion lugar", "場所", "位置 地点"),
    ("address", "adress", "adress anschrift", "direccion", "住所", "地址"),
    ("country", "pays", "land lander", "pais paises", "国", "国家"),
    ("city", "ville", "stadt stadte", "ciudad", "都市", "城市"),
    ("language", "langu", "sprach", "idiom lengua", "言語", "语言"),
    ("holiday", "feri", "feiertag", "feriad festiv", "祝日", "节假日 假日"),
    ("weather", "meteo", "wetter", "clim tiemp", "天気", "天气"),
    ("movie", "film", "film", "pelicul", "映画", "电影"),
    ("music", "musiqu", "musik", "music", "音楽", "音乐"),
    ("project", "projet", "projekt", "proyect", "プロジェクト", "项目"),
    ("task", "tach", "aufgab", "tare", "タスク", "任务"),
    ("team", "equip", "mannschaft", "equip", "チーム", "团队"),
    ("group", "groupe", "grupp", "grup", "グループ", "群组 分组"),
    ("organization", "organis", "organis unternehm", "organiz empres", "組織", "组织"),
    ("repository", "depot depots", "repositor", "repositori", "リポジトリ", "仓库 存储库"),
    ("branch", "branche", "zweig", "ram", "ブランチ", "分支"),
    ("issue", "probleme ticket", "fehlerbericht problem", "incidenci problem", "課題 イシュー", "问题"),
    ("release", "version", "veroffentlich", "lanzamient", "リリース", "发布"),
    ("label", "etiquett", "etikett", "etiquet", "ラベル", "标签"),
    ("tag", "balis", "schlagwort", "etiquet", "タグ", "标签"),
    ("token", "jeton", "token", "token", "トークン", "令牌"),
    ("key", "cle cles clef", "schlussel", "clav llav", "キー 鍵", "密钥"),
    ("password", "passe", "passwort kennwort", "contrasen", "パスワード", "密码"),
    ("role", "role", "rolle", "rol roles", "ロール 役割", "角色"),
    ("permission", "permiss", "berechtig", "permis", "権限", "权限"),
    ("server", "serveur", "server", "servidor", "サーバー サーバ", "服务器"),
    ("webhook", "webhook", "webhook", "webhook", "ウェブフック", "网络钩子"),
    ("name", "nom noms", "name namen", "nombre nombres", "名前 名称", "名称 名字"),
    ("number", "numer", "nummer", "numer", "番号", "号码"),
    ("date", "date", "datum", "fech", "日付", "日期"),
    ("coupon", "bon reduction", "gutschein", "cupon", "クーポン", "优惠券"),
    ("delivery", "livraison", "lieferung", "entreg", "配送 配達", "配送"),
    ("script", "script", "skript", "script", "スクリプト", "脚本"),
    ("contact", "contact", "kontakt", "contact", "連絡先", "联系人"),
    ("note", "note", "notiz", "nota notas", "メモ ノート", "笔记 备注"),
    ("log", "journal journaux", "protokoll", "registro", "ログ", "日志"),
    ("history", "historiqu", "verlauf historie", "historial", "履歴", "历史"),
    ("data", "donne donnee", "daten", "dato datos", "データ", "数据"),
    ("request", "demand", "anfrag", "solicitud", "リクエスト 依頼", "请求"),
    ("health", "sante", "gesundheit", "salud", "稼働", "健康"),
    ("code", "code", "quellcode", "codigo codigos", "コード", "代码"),
    ("profile", "profil", "profil", "perfil perfiles", "プロフィール", "个人资料 资料"),
    ("domain", "domaine domaines", "domain", "dominio dominios", "ドメイン", "域名"),
    ("volume", "volume", "volumen", "volumen", "ボリューム", "卷"),
    ("database", "basededonnees", "datenbank", "basededatos", "データベース", "数据库"),
    ("balancer", "repartiteur", "lastverteil lastenverteil", "balanceador", "ロードバランサー", "负载均衡"),
    ("network", "reseau reseaux", "netzwerk netz", "redes", "ネットワーク", "网络"),
    ("node", "noeud noeuds", "knoten", "nodo nodos", "ノード", "节点"),
    ("cluster", "grappe", "cluster", "cluster", "クラスター クラスタ", "集群"),
    ("container", "conteneur", "container behalter", "contenedor", "コンテナ", "容器"),
    ("backup", "sauvegard", "sicherung", "respaldo", "バックアップ", "备份"),
    ("region", "region", "region", "region", "リージョン 地域", "区域 地区"),
    ("deployment", "deploiement", "bereitstell", "despliegu", "デプロイ", "部署"),
    ("job", "travail travaux", "arbeit", "trabajo trabajos", "ジョブ", "作业"),
    ("alert", "alerte alertes", "warnung", "alerta alertas", "アラート", "警报 告警"),
    ("notification", "notification", "benachrichtig", "notificacion", "通知", "通知"),
    ("pull", "", "", "", "プル プルリクエスト", "拉取"),
    ("request", "requet", "", "", "プルリクエスト", ""),
    ("commit", "commit", "commit", "commit", "コミット", "提交"),
    ("workflow", "", "arbeitsablauf", "flujo", "ワークフロー", "工作流"),
    ("milestone", "jalon", "meilenstein", "hito", "マイルストーン", "里程碑"),
    ("page", "page", "seite seiten", "pagina paginas", "ページ", "页面"),
    ("article", "articl", "artikel", "articul", "記事", "文章"),
    ("post", "publication", "beitrag beitrage", "publicacion entrada", "投稿", "帖子"),
    ("question", "question", "frage fragen", "pregunt", "質問", "问题"),
    ("answer", "repons", "antwort", "respuest", "回答", "回答"),
    ("book", "livre livres", "buch bucher", "libro libros", "本", "书"),
    ("song", "chanson", "lied lieder", "cancion", "曲", "歌曲"),
    ("artist", "artist", "kunstler", "artist", "アーティスト", "艺术家"),
    ("album", "album", "album", "album", "アルバム", "专辑"),
    ("playlist", "listedelecture", "wiedergabelist", "listadereproduccion", "プレイリスト", "播放列表"),
    ("station", "gare gares station", "bahnhof bahnhofe", "estacion", "駅", "车站"),
    ("train", "train trains", "zuge", "tren trenes", "電車 列車", "火车 列车"),
    ("flight", "vol vols", "flug fluge", "vuelo vuelos", "フライト 航空便", "航班"),
    ("trip", "voyag", "reise reisen", "viaje viajes", "旅行", "行程 旅行"),
    ("hotel", "hotel", "hotel", "hotel", "ホテル", "酒店"),
    ("room", "chambre salle", "zimmer raum", "habitacion sala", "部屋", "房间"),
    ("booking", "reservation", "buchung", "reservacion reserva", "予約", "预订"),
    ("ticket", "billet", "fahrkart", "billete boleto", "チケット", "票"),
    ("seat", "siege", "sitzplatz", "asiento", "座席", "座位"),
    ("card", "carte cartes", "karte karten", "tarjet", "カード", "卡片 卡"),
    ("balance", "solde", "guthaben saldo", "saldo", "残高", "余额"),
    ("transaction", "transaction", "transaktion", "transaccion", "取引", "交易"),
    ("transfer", "virement transfert", "uberweis", "transferenci", "振込 送金", "转账"),
    ("bank", "banqu", "bank", "banco bancos", "銀行", "银行"),
    ("currency", "devis monnai", "wahrung", "moned divis", "通貨", "货币"),
    ("exchange", "chang", "wechselkurs", "cambio", "為替", "汇率"),
    ("rate", "taux", "kurs", "tasa tasas", "レート", "费率 汇率"),
    ("tax", "taxe impot", "steuer", "impuest", "税", "税"),
    ("discount", "remise", "rabatt", "descuent", "割引", "折扣"),
    ("cart", "panier", "warenkorb", "carrito", "カート", "购物车"),
    ("supplier", "fourniss", "lieferant", "proveedor", "仕入先", "供应商"),
    ("employee", "employe employes", "mitarbeiter angestellt", "emplead", "従業員 社員", "员工"),
    ("company", "entrepris societe", "firma unternehm", "empresa empresas compania", "会社 企業", "公司"),
    ("department", "departement", "abteilung", "departament", "部門", "部门"),
    ("student", "etudiant", "student", "estudiant", "学生", "学生"),
    ("course", "cours", "kurs", "asignatur", "コース", "课程"),
    ("device", "appareil", "gerat gerate", "dispositiv", "デバイス 端末", "设备"),
    ("form", "formulair", "formular", "formulari", "フォーム", "表单"),
    ("template", "modele gabarit", "vorlag", "plantill", "テンプレート", "模板"),
    ("link", "lien liens", "verknupf", "enlac", "リンク", "链接"),
    ("version", "version", "version", "version", "バージョン", "版本"),
    ("time", "heure temps", "zeit uhrzeit", "hora horas", "時間 時刻", "时间"),
    ("game", "jeu jeux", "spiel", "juego juegos", "ゲーム", "游戏"),
    ("cat", "chaton", "katze", "gato gatos", "猫", "猫"),
    ("dog", "chien", "hund", "perro perros", "犬", "狗"),
)  # fmt: skip
"""What it is done to."""

_FUNCTION_WORDS = {
    "fr": "le la les un une des du de l d au aux et ou a pour par sur dans avec sans ce cette ces mon ma mes ton ta tes"
    " son sa ses notre nos votre vos leur leurs je tu il elle nous vous ils que qui quoi quel quelle quels quelles"
    " comment est sont etre veux voudrais peux peut moi tous toutes tout toute chaque nouveau nouvelle nouveaux jour en"
    " ne pas plus selon entre depuis vers",
    "de": "der die das den dem ein eine einen einem einer eines und oder fur von vom zu zum zur mit ohne auf aus bei im"
    " in an am ist sind mein meine meinen meiner dein deine ich du wir ihr alle aller allen jede jeder jeden neu neue"
    " neuen neuer neues bitte mochte will wie welche welcher welches nach uber lade ladt lass mir uns ab",
    "es": "el los las unos unas del al y o para por con sin en este esta estos estas mi mis tu su sus nuestro nuestra"
    " yo quiero puedo como cual cuales que es son ser todo todos toda todas cada nuevo nueva nuevos nuevas favor me"
    " segun desde hasta",
}
FUNCTION_WORDS = frozenset(_WORD.findall(" ".join(_FUNCTION_WORDS.values())))
"""Words that say nothing about an operation; they are dropped only from questions that are not English."""

_ENDINGS = {
    "fr": "s e es er ers ez ent ons r ir re res ee ees ation ement eur eurs i is it ie ies ier iez ique iques x y ye"
    " yer yez ne",
    "de": "n en t et er ern ung ungen em nen st te el eln rn",
    "es": "a o as os ar an amos ad ado ada ando ion iones endo ia ias io ios ue ues ta tas na ra rs",
}
ENDINGS = frozenset(_WORD.findall(" ".join(_ENDINGS.values())))
"""What may follow a stem."""


def _tables() -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, tuple[str, ...]]]:
    spaced: dict[str, dict[str, None]] = {}
    unspaced: dict[str, dict[str, None]] = {}
    for english, french, german, spanish, japanese, chinese in (*_DEEDS, *_THINGS):
        for stem in f"{french} {german} {spanish}".split():
            spaced.setdefault(stem, {})[english] = None
        for word in f"{japanese} {chinese}".split():
            unspaced.setdefault(word, {})[english] = None
    return _frozen(spaced), _frozen(unspaced)


def _frozen(table: Mapping[str, Mapping[str, None]]) -> Mapping[str, tuple[str, ...]]:
    return {word: tuple(meanings) for word, meanings in table.items()}


SPACED, UNSPACED = _tables()
"""Stem of a Latin word, or word of a script without spaces → its English words."""
DEEDS = frozenset(row[0] for row in _DEEDS)
"""The English words of what is done."""
